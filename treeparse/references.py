"""The works that docstrings and messages cite: first those with short names, then by author.

[DM] Timothy Dozat and Christopher D. Manning 2017. Deep Biaffine Attention for Neural Dependency Parsing. ICLR.
[Exp] Ran Zmigrod, Tim Vieira and Ryan Cotterell 2021. Efficient Computation of Expectations under Spanning Tree
    Distributions. Transactions of the Association for Computational Linguistics 9.
[GTH] Winfried K. Grassmann, Michael I. Taksar and Daniel P. Heyman 1985. Regenerative Analysis and Steady State
    Distributions for Markov Chains. Operations Research 33(5). For trees: Sergey Fomin, Dima Grigoriev and Gleb
    Koshevoy 2016. Subtraction-Free Complexity, Cluster Transformations, and Spanning Trees. Foundations of
    Computational Mathematics 16.
[KBest] Ran Zmigrod, Tim Vieira and Ryan Cotterell 2021. On Finding the K-best Non-projective Dependency Trees.
    ACL-IJCNLP.
[Lec] Ryan McDonald and Joakim Nivre 2007. Introduction to Data-Driven Dependency Parsing. Course at ESSLLI, lecture
    4.
[MTT] Terry Koo, Amir Globerson, Xavier Carreras and Michael Collins 2007. Structured Prediction Models via the
    Matrix-Tree Theorem. EMNLP-CoNLL.
[Root] Ran Zmigrod, Tim Vieira and Ryan Cotterell 2020. Please Mind the Root: Decoding Arborescences for Dependency
    Parsing. EMNLP. After Harold N. Gabow and Robert E. Tarjan 1984. Efficient Algorithms for a Family of Matroid
    Intersection Problems. Journal of Algorithms 5(1). Reweighting: Miloš Stanojević and Shay B. Cohen 2021. A Root of
    a Problem: Optimizing Single-Root Dependency Parsing. EMNLP.
[Samp] Ran Zmigrod, Tim Vieira and Ryan Cotterell 2021. Efficient Sampling of Dependency Structure. EMNLP.
[Unb] Miloš Stanojević 2022. Unbiased and Efficient Sampling of Dependency Trees. EMNLP.

Jonathan Barzilai and Jonathan M. Borwein 1988. Two-Point Step Size Gradient Methods. IMA Journal of Numerical Analysis
    8(1).
Taylor Berg-Kirkpatrick, David Burkett and Dan Klein 2012. An Empirical Investigation of Statistical Significance in
    NLP. EMNLP-CoNLL.
Ernesto G. Birgin, José Mario Martínez and Marcos Raydan 2000. Nonmonotone Spectral Projected Gradient Methods on Convex
    Sets. SIAM Journal on Optimization 10(4).
Piotr Bojanowski, Edouard Grave, Armand Joulin and Tomas Mikolov 2017. Enriching Word Vectors with Subword Information.
    Transactions of the ACL 5.
Glenn W. Brier 1950. Verification of Forecasts Expressed in Terms of Probability. Monthly Weather Review 78(1).
Paolo M. Camerini, Luigi Fratta and Francesco Maffioli 1980. The K Best Spanning Arborescences of a Network. Networks
    10.
Michael Collins 2002. Discriminative Training Methods for Hidden Markov Models: Theory and Experiments with Perceptron
    Algorithms. EMNLP.
Michael Collins and Terry Koo 2005. Discriminative Reranking for Natural Language Parsing. Computational Linguistics
    31(1).
Charles J. Colbourn, Wendy J. Myrvold and Eugene Neufeld 1996. Two Algorithms for Unranking Arborescences. Journal of
    Algorithms 20.
Koby Crammer and Yoram Singer 2003. Ultraconservative Online Algorithms for Multiclass Problems. Journal of Machine
    Learning Research 3.
Anthony C. Davison and David V. Hinkley 1997. Bootstrap Methods and Their Application. Cambridge University Press.
Theodorus J. Dekker 1971. A Floating-Point Technique for Extending the Available Precision. Numerische Mathematik 18.
Gregory Druck, Gideon Mann and Andrew McCallum 2009. Semi-supervised Learning of Dependency Parsers using Generalized
    Expectation Criteria. ACL-IJCNLP.
Gregory Druck and David Smith 2009. Computing Conditional Feature Covariance in Non-Projective Tree Conditional Random
    Fields. Technical report, University of Massachusetts.
Nick Duffield, Carsten Lund and Mikkel Thorup 2007. Priority Sampling for Estimation of Arbitrary Subset Sums. Journal
    of the ACM 54(6).
Jason Eisner 1996. Three New Probabilistic Models for Dependency Parsing: An Exploration. COLING.
Jason Eisner 2000. Bilexical Grammars and Their Cubic-Time Parsing Algorithms. In Advances in Probabilistic and Other
    Parsing Technologies, Kluwer.
Michael L. Fredman, Robert Sedgewick, Daniel D. Sleator and Robert E. Tarjan 1986. The Pairing Heap: A New Form of
    Self-Adjusting Heap. Algorithmica 1.
Yarin Gal and Zoubin Ghahramani 2016. A Theoretically Grounded Application of Dropout in Recurrent Neural Networks.
    NIPS.
Yoav Freund and Robert E. Schapire 1999. Large Margin Classification Using the Perceptron Algorithm. Machine Learning
    37(3).
Kuzman Ganchev, João Graça, Jennifer Gillenwater and Ben Taskar 2010. Posterior Regularization for Structured Latent
    Variable Models. Journal of Machine Learning Research 11.
Joshua Goodman 1998. Parsing Inside-Out. PhD thesis, Harvard University.
Yves Grandvalet and Yoshua Bengio 2004. Semi-supervised Learning by Entropy Minimization. NIPS.
Chuan Guo, Geoff Pleiss, Yu Sun and Kilian Q. Weinberger 2017. On Calibration of Modern Neural Networks. ICML.
Clifford Hildreth 1957. A Quadratic Programming Procedure. Naval Research Logistics Quarterly 4(1).
Daniel G. Horvitz and Donovan J. Thompson 1952. A Generalization of Sampling Without Replacement from a Finite
    Universe. Journal of the American Statistical Association 47.
Jeremy Howard and Sebastian Ruder 2018. Universal Language Model Fine-tuning for Text Classification. ACL.
Edward J. Hu, Yelong Shen, Phillip Wallis, Zeyuan Allen-Zhu, Yuanzhi Li, Shean Wang, Lu Wang and Weizhu Chen 2022. LoRA:
    Low-Rank Adaptation of Large Language Models. ICLR.
Liang Huang and David Chiang 2005. Better k-best Parsing. IWPT.
Jack Kiefer 1953. Sequential Minimax Search for a Maximum. Proceedings of the American Mathematical Society 4(3).
Yoon Kim, Yacine Jernite, David Sontag and Alexander M. Rush 2016. Character-Aware Neural Language Models. AAAI.
Philipp Koehn 2004. Statistical Significance Tests for Machine Translation Evaluation. EMNLP.
Terry Koo and Michael Collins 2010. Efficient Third-Order Dependency Parsers. ACL.
Terry Koo, Alexander M. Rush, Michael Collins, Tommi Jaakkola and David Sontag 2010. Dual Decomposition for Parsing with
    Non-Projective Head Automata. EMNLP.
Wouter Kool, Herke van Hoof and Max Welling 2019. Stochastic Beams and Where to Find Them: The Gumbel-Top-k Trick for
    Sampling Sequences Without Replacement. ICML.
Dan Kondratyuk and Milan Straka 2019. 75 Languages, 1 Model: Parsing Universal Dependencies Universally. EMNLP-IJCNLP.
Wouter Kool, Herke van Hoof and Max Welling 2019. Buy 4 REINFORCE Samples, Get a Baseline for Free! ICLR workshop Deep
    Reinforcement Learning Meets Structured Prediction.
Wouter Kool, Herke van Hoof and Max Welling 2020. Estimating Gradients for Discrete Random Variables by Sampling
    without Replacement. ICLR.
Adhiguna Kuncoro, Miguel Ballesteros, Lingpeng Kong, Chris Dyer and Noah A. Smith 2016. Distilling an Ensemble of Greedy
    Dependency Parsers into One MST Parser. EMNLP.
Ailsa H. Land and Alison G. Doig 1960. An Automatic Method of Solving Discrete Programming Problems. Econometrica 28(3).
Eugene L. Lawler 1972. A Procedure for Computing the K Best Solutions to Discrete Optimization Problems and Its
    Application to the Shortest Path Problem. Management Science 18(7).
Andrew McCallum, Gideon Mann and Gregory Druck 2007. Generalized Expectation Criteria. Technical report, University of
    Massachusetts.
Ryan McDonald, Koby Crammer and Fernando Pereira 2005. Online Large-Margin Training of Dependency Parsers. ACL.
Ryan McDonald and Fernando Pereira 2006. Online Learning of Approximate Dependency Parsing Algorithms. EACL.
Ryan McDonald and Giorgio Satta 2007. On the Complexity of Non-Projective Data-Driven Dependency Parsing. IWPT.
Stephen Merity, Nitish Shirish Keskar and Richard Socher 2018. Regularizing and Optimizing LSTM Language Models. ICLR.
Mahdi Pakdaman Naeini, Gregory F. Cooper and Milos Hauskrecht 2015. Obtaining Well Calibrated Probabilities Using
    Bayesian Binning. AAAI.
Joakim Nivre 2004. Incrementality in Deterministic Dependency Parsing. ACL workshop Incremental Parsing.
Joakim Nivre and Chiao-Ting Fang 2017. Universal Dependency Evaluation. Workshop on Universal Dependencies.
Alexander Panchenko, Eugen Ruppert, Stefano Faralli, Simone P. Ponzetto and Chris Biemann 2018. Building a Web-Scale
    Dependency-Parsed Corpus from Common Crawl. LREC.
Max B. Paulus, Dami Choi, Daniel Tarlow, Andreas Krause and Chris J. Maddison 2020. Gradient Estimation with Stochastic
    Softmax Tricks. NeurIPS.
Matthew E. Peters, Mark Neumann, Mohit Iyyer, Matt Gardner, Christopher Clark, Kenton Lee and Luke Zettlemoyer 2018.
    Deep Contextualized Word Representations. NAACL-HLT.
Boris T. Polyak 1969. Minimization of Unsmooth Functionals. USSR Computational Mathematics and
    Mathematical Physics 9(3).
Stefan Riezler, Tracy H. King, Ronald M. Kaplan, Richard Crouch, John T. Maxwell III and Mark Johnson 2002. Parsing the
    Wall Street Journal using a Lexical-Functional Grammar and Discriminative Estimation Techniques. ACL.
Mauricio Sadinle, Jing Lei and Larry Wasserman 2019. Least Ambiguous Set-Valued Classifiers With Bounded Error Levels.
    Journal of the American Statistical Association 114(525).
Burr Settles and Mark Craven 2008. An Analysis of Active Learning Strategies for Sequence Labeling Tasks. EMNLP.
David A. Smith and Jason Eisner 2006. Minimum Risk Annealing for Training Log-Linear Models. COLING/ACL.
David A. Smith and Jason Eisner 2007. Bootstrapping Feature-Rich Dependency Parsers with Entropic Priors. EMNLP-CoNLL.
Noah A. Smith and Jason Eisner 2006. Annealing Structural Bias in Multilingual Weighted Grammar Induction. COLING/ACL.
William Squire and George Trapp 1998. Using Complex Variables to Estimate Derivatives of Real Functions. SIAM Review
    40(1).
Guy L. Steele, Doug Lea and Christine H. Flood 2014. Fast Splittable Pseudorandom Number Generators. OOPSLA.
Kai Sheng Tai, Richard Socher and Christopher D. Manning 2015. Improved Semantic Representations From Tree-Structured
    Long Short-Term Memory Networks. ACL-IJCNLP.
Oscar Täckström, Ryan McDonald and Joakim Nivre 2013. Target Language Adaptation of Discriminative Transfer Parsers.
    NAACL-HLT.
Ben Taskar, Vassil Chatalbashev, Daphne Koller and Carlos Guestrin 2005. Learning Structured Prediction Models: A Large
    Margin Approach. ICML.
Michael D. Vose 1991. A Linear Algorithm for Generating Random Numbers with a Given Distribution. IEEE Transactions on
    Software Engineering 17(9).
Vladimir Vovk, Alex Gammerman and Glenn Shafer 2005. Algorithmic Learning in a Random World. Springer.
Xinyu Wang and Kewei Tu 2020. Second-Order Neural Dependency Parsing with Message Passing and End-to-End Training.
    AACL-IJCNLP.
David B. Wilson 1996. Generating Random Spanning Trees More Quickly than the Cover Time. STOC.
Yuan Zhang, Tao Lei, Regina Barzilay and Tommi Jaakkola 2014. Greed is Good if Randomized: New Inference for Dependency
    Parsing. EMNLP.
Xingxing Zhang, Jianpeng Cheng and Mirella Lapata 2017. Dependency Parsing as Head Selection. EACL.
"""
