"""The mean of each entry of a sparse vector, by mechanisms that papers compare with."""
