"""What is measured of samplers: their law, their speed, and the algorithms of [Samp] and [Unb]."""
