"""A cluster of our own, on one machine and for one run, does without the daemons of Ray that it never needs."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

_NEEDLESS = {
    'start_monitor': 'adds and removes machines',
    'start_api_server': "without a dashboard, tells Ray's makers what is used",
    'start_log_monitor': 'shows what roles print',
}


@contextlib.contextmanager
def fewer_daemons(show_output: bool) -> Iterator[None]:
    """
    Overview:
        What ``ray.init`` starts inside the ``with`` block is smaller by three Python programs of 45 MB each. A version
        of Ray that names their starting otherwise starts them all.
    Arguments:
        - show_output (:obj:`bool`): what roles print is to be shown
    """
    node = sys.modules['ray._private.node'].Node
    left_out = {name: getattr(node, name) for name in _NEEDLESS if hasattr(node, name)}
    if show_output:
        left_out.pop('start_log_monitor', None)
    for name in left_out:
        setattr(node, name, _nothing)
    try:
        yield
    finally:
        for name, method in left_out.items():
            setattr(node, name, method)


def _nothing(node: Any, *args: Any, **kwargs: Any) -> None:
    """In place of a method that starts a daemon."""
