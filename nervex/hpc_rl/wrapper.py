"""Replacing an operator of rl_utils by a faster one with the same signature, when ``nervex.enable_hpc_rl`` says so."""

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

import nervex

logger = logging.getLogger(__name__)
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_operators: dict[str, Callable] = {}
_builtin_loaded = False


def is_traced(tensor: torch.Tensor) -> bool:
    """
    Overview:
        Whether a tracer or a transform (make_fx, torch.compile, vmap, ...) watches: it must see torch operators,
        because results of NumPy and numba would be recorded as constants.
    """
    return (
        type(tensor) not in _PLAIN
        or torch.compiler.is_compiling()
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._functorch.peek_interpreter_stack() is not None
    )


def register_hpc_op(name: str, operator: Callable) -> None:
    """
    Overview:
        Offer a faster version of an operator.
    Arguments:
        - name (:obj:`str`): name of the function that it replaces
        - operator (:obj:`Callable`): called as :func:`hpc_wrapper` says; returns NotImplemented for inputs that it is
          not made for, which then take the ordinary way
    """
    _operators[name] = operator


def find_hpc_op(name: str) -> Callable | None:
    """
    Overview:
        The faster version of an operator, or None. The built-in ones need numba (``pip install nervex[fast]``);
        without it there are none, which is logged once.
    """
    global _builtin_loaded
    if not _builtin_loaded:
        _builtin_loaded = True
        try:
            from nervex.hpc_rl.operators import OPERATORS
        except (ImportError, RuntimeError) as error:  # numba raises RuntimeError where it may not keep what it compiles
            logger.warning('nervex.enable_hpc_rl has no effect: %s; pip install nervex[fast]', error)
        else:
            for key, operator in OPERATORS.items():
                _operators.setdefault(key, cast(Callable, operator))
    return _operators.get(name)


def hpc_wrapper(
    shape_fn: Callable | None = None,
    namedtuple_data: bool = False,
    include_args: Sequence[int] | None = None,
    include_kwargs: Sequence[str] | None = None,
    is_cls_method: bool = False,
    name: str | None = None,
) -> Callable[[Callable], Callable]:
    """
    Overview:
        A decorator: the function stays what it is while ``nervex.enable_hpc_rl`` is False (the flag is read on every
        call); otherwise its faster version, if there is one for these inputs, answers. The results are the same up to
        rounding.
    Arguments:
        - shape_fn (:obj:`Callable | None`): positional arguments -> shape. The operator is then a class, built once
          for each shape as ``operator(*shape)``, and its instances are called
        - namedtuple_data (:obj:`bool`): hand over the fields of the first argument one by one
        - include_args (:obj:`Sequence[int] | None`): positions of the other arguments to hand over; None is all of them
        - include_kwargs (:obj:`Sequence[str] | None`): names of the keyword arguments to hand over; None is all of them
        - is_cls_method (:obj:`bool`): the function is a method; ``self`` is not handed over
        - name (:obj:`str | None`): name of the operator; None is the function's name
    """

    def decorate(function: Callable) -> Callable:
        operator_name = name or function.__name__
        instances: dict[Any, Callable] = {}
        chosen = namedtuple_data or include_args is not None or include_kwargs is not None
        as_it_is = shape_fn is None and not is_cls_method and not chosen

        def by_operator(operator: Callable, args: tuple, kwargs: dict) -> Any:
            inputs = args[1:] if is_cls_method else args
            if shape_fn is not None:
                shape = tuple(shape_fn(inputs))
                if (operator, shape) not in instances:
                    instances[operator, shape] = operator(*shape)
                operator = instances[operator, shape]
            first = inputs[0] if namedtuple_data else inputs[:1] if include_args is None else ()
            rest = inputs[1:] if include_args is None else [inputs[i] for i in include_args if i < len(inputs)]
            named = kwargs if include_kwargs is None else {k: kwargs[k] for k in include_kwargs if k in kwargs}
            return operator(*first, *rest, **named)

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            operator = find_hpc_op(operator_name) if nervex.enable_hpc_rl else None
            if operator is None:
                return function(*args, **kwargs)
            result = operator(*args, **kwargs) if as_it_is else by_operator(operator, args, kwargs)
            return function(*args, **kwargs) if result is NotImplemented else result

        return wrapper

    return decorate
