"""
Run-time behaviour around a model: how its output becomes an action, target networks, hidden state, gradients.

    armor = Armor(model)
    armor.add_model('target', update_type='assign', update_kwargs={'freq': 100})
    armor.add_plugin('main', 'eps_greedy_sample')
    output = armor.forward({'obs': obs}, eps=0.1)
"""

from nervex.utils.lazy import homes, lazy_exports

#: other names of the plugin classes
_OTHER_NAMES = {
    'GradHelper': 'nervex.armor.switches:GradPlugin',
    'HiddenStateHelper': 'nervex.armor.hidden_state:HiddenStatePlugin',
    'ArgmaxSampleHelper': 'nervex.armor.by_policy:ArgmaxSamplePlugin',
    'EpsGreedySampleHelper': 'nervex.armor.sampling:EpsGreedySamplePlugin',
    'MultinomialSampleHelper': 'nervex.armor.by_policy:MultinomialSamplePlugin',
    'ActionNoiseHelper': 'nervex.armor.noise:ActionNoisePlugin',
    'TargetNetworkHelper': 'nervex.armor.armor:TargetPlugin',
    'TeacherNetworkHelper': 'nervex.armor.switches:TeacherPlugin',
}
_HOMES = {
    'nervex.armor.armor': 'Armor GraphPlugin TargetPlugin',
    'nervex.armor.base_armor': 'BaseArmor',
    'nervex.armor.hidden_state': 'HiddenStatePlugin',
    'nervex.armor.noise': 'ActionNoisePlugin',
    'nervex.armor.plugin': 'IArmorPlugin IArmorStatefulPlugin IArmorStatelessPlugin add_plugin register_plugin',
    'nervex.armor.switches': 'GradPlugin TeacherPlugin',
    'nervex.armor.by_policy': 'ArgmaxSamplePlugin EpsMultinomialSamplePlugin MultinomialSamplePlugin mu_sigma_of',
    'nervex.armor.sampling': 'Draws EpsGreedySamplePlugin',
}
__getattr__, __dir__, __all__ = lazy_exports(__name__, {**homes(_HOMES), **_OTHER_NAMES})
