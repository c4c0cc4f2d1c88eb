"""Names of the columns that the framework itself adds to stored transitions; the error for a missing one."""

from collections.abc import Iterable

from nervex.utils.errors import UnknownNameError, nearest

#: Columns that the framework adds. An actor refuses a policy's own column of such a name, except ``OFFERED_COLUMNS``.
FRAMEWORK_COLUMNS = (
    'collect_iter',
    'env_id',
    'truncated',
    'IS',
    'priority',
    'use',
    'staleness',
    'replay_unique_id',
    'replay_buffer_idx',
)
#: Framework columns that an actor or a policy may deliver.
OFFERED_COLUMNS = ('priority', 'truncated')
#: What a buffer adds to a sample.
SAMPLE_COLUMNS = ('IS', 'priority', 'replay_unique_id', 'replay_buffer_idx', 'use', 'staleness')
#: Columns that most Batches have, under the names of our policies and of the ReplayBuffer (a text of names).
USUAL_COLUMNS = (
    'obs next_obs action reward done truncated logit value adv weight IS priority act rew obs_next info policy'
)


def missing_column(error: KeyError, columns: Iterable[str], reader: str, remedy: str) -> KeyError:
    """
    Overview:
        The error for a hook that read a column which is not there; a KeyError of something else is answered as it is.
    Arguments:
        - columns (:obj:`Iterable[str]`): those that are there
        - reader (:obj:`str`): who read it, e.g. ``DQNPolicy._forward_learn``
    """
    name, names = error.args[0] if error.args else None, list(columns)
    if not isinstance(name, str) or isinstance(error, UnknownNameError) or name in names or not name.isidentifier():
        return error
    near = nearest(name, names)
    hint = f', did you mean {near!r}' if near else ''
    return UnknownNameError(
        f'{reader} asks for {name!r}, which is none of the columns ({", ".join(names)}){hint}; if it is meant to be '
        f'one, {remedy}'
    )
