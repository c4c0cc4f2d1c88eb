"""``python -m nervex``: the command, where it is not on the path."""

from nervex.entry.cli import main

if __name__ == '__main__':
    main()
