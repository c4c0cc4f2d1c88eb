"""Names of the columns that the framework itself adds to stored transitions."""

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
#: Columns that most Batches have, under the names of our policies and of the ReplayBuffer.
USUAL_COLUMNS = (
    'obs',
    'next_obs',
    'action',
    'reward',
    'done',
    'truncated',
    'logit',
    'value',
    'adv',
    'weight',
    'IS',
    'priority',
    'act',
    'rew',
    'obs_next',
    'info',
    'policy',
)
