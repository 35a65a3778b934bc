"""dmin: few-shot text classification with Dynamic Memory Induction Networks (Geng et al., ACL 2020)."""

__version__ = "0.1.0"
