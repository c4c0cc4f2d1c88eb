"""Write the diagrams of ``nervex.design.diagrams`` into a folder."""

import sys

from nervex.design.diagrams import write_diagrams

if __name__ == '__main__':
    print('\n'.join(write_diagrams(sys.argv[1] if len(sys.argv) > 1 else 'design')))
