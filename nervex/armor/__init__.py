"""
Run-time behaviour around a model: how its output becomes an action, target networks, hidden state, gradients.

    armor = Armor(model)
    armor.add_model('target', update_type='assign', update_kwargs={'freq': 100})
    armor.add_plugin('main', 'eps_greedy_sample')
    output = armor.forward({'obs': obs}, eps=0.1)
"""

from nervex.utils.lazy import lazy_exports

_HOMES = {
    'nervex.armor.armor': 'Armor GraphPlugin TargetPlugin TargetNetworkHelper=TargetPlugin',
    'nervex.armor.base_armor': 'BaseArmor',
    'nervex.armor.hidden_state': 'HiddenStatePlugin HiddenStateHelper=HiddenStatePlugin',
    'nervex.armor.noise': 'ActionNoisePlugin ActionNoiseHelper=ActionNoisePlugin',
    'nervex.armor.plugin': 'IArmorPlugin IArmorStatefulPlugin IArmorStatelessPlugin add_plugin register_plugin',
    'nervex.armor.switches': ('GradPlugin TeacherPlugin GradHelper=GradPlugin TeacherNetworkHelper=TeacherPlugin'),
    'nervex.armor.by_policy': (
        'ArgmaxSamplePlugin EpsMultinomialSamplePlugin MultinomialSamplePlugin mu_sigma_of '
        'ArgmaxSampleHelper=ArgmaxSamplePlugin MultinomialSampleHelper=MultinomialSamplePlugin'
    ),
    'nervex.armor.sampling': 'Draws EpsGreedySamplePlugin EpsGreedySampleHelper=EpsGreedySamplePlugin',
}
__getattr__, __dir__, __all__ = lazy_exports(__name__, _HOMES)
