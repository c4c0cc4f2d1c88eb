import pytest

from nervex.config import ConfigError, compile_config


def hooks(config, **given):
    config['learner'] = dict(hook=given)
    return compile_config(config).learner.hook


def test_own_hooks_stand_beside_the_defaults_and_a_default_can_be_changed(config):
    resolved = hooks(
        config,
        save_ckpt_after_iter=dict(type='save_ckpt', position='after_iter', ext_args=dict(freq=10)),
        log_show=dict(ext_args=dict(freq=5)),
    )
    assert resolved.save_ckpt_after_iter.ext_args.freq == 10
    assert resolved.log_show.type == 'log_show' and resolved.log_show.ext_args.freq == 5


def test_the_short_form_and_none(config):
    resolved = hooks(config, save_ckpt_after_iter=1000, save_ckpt_after_run=True, log_show=None)
    assert resolved.save_ckpt_after_iter == 1000 and resolved.log_show is None


@pytest.mark.parametrize(
    'hook, words',
    [
        (
            dict(mine=dict(type='save_ckp', position='after_iter')),
            "learner.hook.mine.type: unknown learner hook 'save_ckp'; did you mean 'save_ckpt'?",
        ),
        (
            dict(mine=dict(type='save_ckpt', position='after_itr')),
            "hook.mine.position: got 'after_itr', must be one of",
        ),
        (dict(mine=dict(type='save_ckpt')), 'learner.hook.mine.position: missing'),
        (dict(mine=dict(type='save_ckpt', position='after_run', prioriti=3)), "did you mean 'priority'?"),
        (
            dict(mine=dict(type='save_ckpt', position='after_run', ext_args=dict(freq=0))),
            'mine.ext_args.freq: got 0, must',
        ),
        (dict(save_ckp_after_iter=10), "unknown learner hook 'save_ckp'"),
        (dict(save_ckpt_after_iter='often'), "save_ckpt_after_iter: got 'often', must be True or an int >= 1"),
        (dict(load_ckpt_before_run=3), 'load_ckpt_before_run: got 3, must be a str'),
        (
            dict(mine=10),
            'learner.hook.mine: got 10, must be a dict with type and position, or the name must end in one of',
        ),
    ],
)
def test_mistakes(config, hook, words):
    with pytest.raises(ConfigError) as caught:
        hooks(config, **hook)
    assert len(caught.value.problems) == 1 and words in caught.value.problems[0]


def test_two_mistakes_in_one_hook_are_both_reported(config):
    with pytest.raises(ConfigError) as caught:
        hooks(config, mine=dict(type='save_ckpt', position=3, priority='first'), other=3)
    assert [problem.split(':')[0] for problem in caught.value.problems] == [
        'learner.hook.mine.position',
        'learner.hook.mine.priority',
        'learner.hook.other',
    ]
