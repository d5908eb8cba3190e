"""The measurements that the paper's authors published in 2019, imported as results."""
