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
    'nervex.armor.plugin': (
        'BaseArmor GradPlugin IArmorPlugin IArmorStatefulPlugin IArmorStatelessPlugin TeacherPlugin add_plugin '
        'register_plugin GradHelper=GradPlugin TeacherNetworkHelper=TeacherPlugin'
    ),
    'nervex.armor.hidden_state': 'HiddenStatePlugin HiddenStateHelper=HiddenStatePlugin',
    'nervex.armor.noise': 'ActionNoisePlugin ActionNoiseHelper=ActionNoisePlugin',
    'nervex.armor.sampling': (
        'ArgmaxSamplePlugin Draws EpsGreedySamplePlugin EpsMultinomialSamplePlugin MultinomialSamplePlugin mu_sigma_of '
        'ArgmaxSampleHelper=ArgmaxSamplePlugin MultinomialSampleHelper=MultinomialSamplePlugin '
        'EpsGreedySampleHelper=EpsGreedySamplePlugin'
    ),
}
__getattr__, __dir__, __all__ = lazy_exports(__name__, _HOMES)
