"""Which pickles may be opened: those that this user has signed, with a key in the user's own config folder."""

import contextlib
import hashlib
import hmac
import os

from nervex.utils.errors import CheckpointError

_MARK, _SIZE = b'signed:', hashlib.sha256().digest_size


class UntrustedError(CheckpointError):
    """The folder of a run holds code, or names it, and this user has not signed it."""


def signature(data: bytes) -> bytes:
    """What only somebody with this user's key can make of the data."""
    return hmac.digest(_key(), data, 'sha256')


def seal(data: bytes) -> bytes:
    """The pickle with this user's signature before it."""
    return _MARK + signature(data) + data


def unseal(data: bytes, trust: bool = False) -> bytes:
    """The pickle in what ``seal`` gave; UntrustedError if this user did not, unless ``trust`` says that it is known."""
    marked = data.startswith(_MARK)
    start = len(_MARK) + _SIZE if marked else 0
    signed = marked and hmac.compare_digest(data[len(_MARK) : start], signature(data[start:]))
    if not (signed or trust):
        raise UntrustedError(
            'its envs are saved as pickles that you have not signed (another user, machine or version made them), and '
            'opening a pickle runs whatever code is in it; --trust opens them: only for a run whose maker you trust'
        )
    return data[start:]


def _key() -> bytes:
    """This user's key, made when it is first needed; other users cannot read it."""
    home = os.environ.get('XDG_CONFIG_HOME') or os.path.join(os.path.expanduser('~'), '.config')
    path = os.path.join(home, 'nervex', 'key')
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        made = f'{path}.{os.getpid()}'
        with os.fdopen(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 'wb') as f:
            f.write(os.urandom(_SIZE))
        with contextlib.suppress(FileExistsError):
            os.link(made, path)  # the first of several processes decides
        os.remove(made)
    with open(path, 'rb') as f:
        key = f.read()
    if len(key) != _SIZE:
        raise CheckpointError(f'{path}: is no key of nervex; remove it, then a new one is made')
    return key
