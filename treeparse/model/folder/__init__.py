"""Model folders: their files, how they are written, checked and read, and models on the Hugging Face hub."""
