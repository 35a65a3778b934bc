"""`python -m dmin`, which is what `torchrun -m dmin` starts."""

from dmin.cli import main

if __name__ == "__main__":
    main()
