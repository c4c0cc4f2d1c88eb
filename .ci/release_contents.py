"""Compare what a sdist and a wheel hold with what git tracks: ``python .ci/release_contents.py SDIST WHEEL``."""

import subprocess
import sys
import tarfile
import zipfile

#: tracked, and of no use outside of a checkout
LEFT_OUT = ('.', 'Dockerfile')


def missing(sdist: str, wheel: str, tracked: list[str]) -> dict[str, list[str]]:
    """What each of the two lacks: the sdist of all that is tracked, the wheel of the files of the packages."""
    with tarfile.open(sdist) as archive:
        names = {name.partition('/')[2] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as archive:
        installed = set(archive.namelist())
    packages = [path for path in tracked if path.startswith(('nervex/', 'app_zoo/')) and '/tests/' not in path]
    return {
        'sdist': [path for path in tracked if path not in names and not path.startswith(LEFT_OUT)],
        'wheel': [path for path in packages if path not in installed],
    }


if __name__ == '__main__':
    files = subprocess.run(['git', 'ls-files'], capture_output=True, text=True, check=True).stdout.splitlines()
    lacking = missing(sys.argv[1], sys.argv[2], files)
    for kind, paths in lacking.items():
        print(f'{kind}: {"complete" if not paths else "lacks " + ", ".join(paths)}')
    sys.exit(any(lacking.values()))
