import pytest

from nervex.config import ConfigError, compile_config


def buffers(config, section):
    config['replay_buffer'] = section
    return compile_config(config).replay_buffer


def test_without_a_name_there_is_one_buffer_called_armor(config):
    resolved = buffers(config, {})
    assert list(resolved) == ['buffer_name', 'armor'] and resolved.armor.meta_maxlen == 4096


def test_flat_settings_hold_for_the_one_buffer(config):
    resolved = buffers(config, dict(meta_maxlen=64, monitor=dict(log_freq=5)))
    assert resolved.buffer_name == ['armor']
    assert resolved.armor.meta_maxlen == 64 and resolved.armor.monitor.log_freq == 5
    assert 'meta_maxlen' not in resolved


def test_named_buffers_with_and_without_the_list_of_names(config):
    assert buffers(config, dict(agent=dict(meta_maxlen=64))).agent.meta_maxlen == 64
    resolved = buffers(config, dict(buffer_name=['agent', 'demo'], alpha=0.3, agent=dict(meta_maxlen=64)))
    assert resolved.buffer_name == ['agent', 'demo']
    assert (resolved.agent.meta_maxlen, resolved.demo.meta_maxlen) == (64, 4096)
    assert (resolved.agent.alpha, resolved.demo.alpha) == (0.3, 0.3)
    assert buffers(config, dict(buffer_name='agent')).buffer_name == ['agent']


def test_another_type_of_buffer_keeps_the_other_defaults(config):
    assert buffers(config, dict(type='on_policy')).armor.meta_maxlen == 4096


@pytest.mark.parametrize(
    'section, words',
    [
        (
            dict(buffer_name=['agent'], agnet=dict(alpha=3)),
            "replay_buffer.agnet: unknown setting; did you mean 'agent'?",
        ),
        (dict(monitr=dict(log_freq=3)), "replay_buffer.monitr: unknown setting; did you mean 'monitor'?"),
        (dict(meta_maxle=3), "replay_buffer.meta_maxle: unknown setting; did you mean 'meta_maxlen'?"),
        (dict(buffer_name=['a', 'a']), 'a name is there twice'),
        (dict(buffer_name=[]), 'must be a list of names'),
        (dict(buffer_name=['agent'], agent=5), 'replay_buffer.agent: got 5, must be a dict'),
    ],
)
def test_mistakes(config, section, words):
    with pytest.raises(ConfigError) as caught:
        buffers(config, section)
    assert len(caught.value.problems) == 1 and words in caught.value.problems[0]
