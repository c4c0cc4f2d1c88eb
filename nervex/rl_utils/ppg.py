"""The auxiliary phase of phasic policy gradient."""

from collections import namedtuple

from nervex.rl_utils.categorical import kl_divergence
from nervex.rl_utils.checks import weighted_mean
from nervex.rl_utils.ppo import ppo_value_data, ppo_value_error

ppg_data = namedtuple('ppg_data', ['logit_new', 'logit_old', 'action', 'value_new', 'value_old', 'return_', 'weight'])
ppg_joint_loss = namedtuple('ppg_joint_loss', ['auxiliary_loss', 'behavioral_cloning_loss'])


def ppg_joint_error(data: ppg_data, clip_ratio: float = 0.2, use_value_clip: bool = True) -> ppg_joint_loss:
    """
    Overview:
        The joint loss of the auxiliary phase: the auxiliary value head learns the returns, while the full categorical
        KL divergence from the old policy keeps the policy:
        :math:`\\frac{1}{2} mean(w (R - V_{aux})^2)` (clipped as in PPO) and
        :math:`mean(w \\sum_a \\pi_{old}(a) (\\log \\pi_{old}(a) - \\log \\pi(a)))` (arXiv:2009.04416).
    Arguments:
        - data (:obj:`ppg_data`): fields as below; ``weight`` may be None, ``action`` is not used. Logits may be
          lists, one tensor per head
        - clip_ratio (:obj:`float`): bound of the value's change, as in PPO
        - use_value_clip (:obj:`bool`): whether to clip the change of the value
    Returns:
        - loss (:obj:`ppg_joint_loss`): auxiliary_loss (with its factor 0.5), behavioral_cloning_loss KL(old || new),
          0-dim
    Shapes:
        - logit_new, logit_old (:obj:`torch.FloatTensor`): :math:`(B, N)`
        - action (:obj:`torch.LongTensor`): :math:`(B, )`
        - value_new, value_old, return_, weight (:obj:`torch.FloatTensor`): :math:`(B, )`
    """
    fields = ppo_value_data(data.value_new, data.value_old, data.return_, data.weight)
    auxiliary_loss = ppo_value_error(fields, clip_ratio, use_value_clip)
    cloning = kl_divergence(data.logit_old, data.logit_new)
    return ppg_joint_loss(auxiliary_loss, weighted_mean(cloning, data.weight))
