"""Problems of mathematics answered by reasoning in words, or by a program that is run."""
