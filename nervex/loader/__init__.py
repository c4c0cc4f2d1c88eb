"""Small combinators that check and convert values; config validation is made of them."""

# ruff: noqa: F401
from nervex.loader.base import Loader
from nervex.loader.collection import cofilter, collection, contains, length, length_is, tpselector, tuple_
from nervex.loader.exception import CollectionError, CompositeStructureError, DictError, MappingError
from nervex.loader.mapping import dict_, item, item_or, mapping, mpfilter, mpitems, mpkeys, mpvalues
from nervex.loader.norm import Norm, land, lcmp, lin, lis, lisnot, lnot, lor, lsum, norm, normfunc
from nervex.loader.number import (
    divide,
    divide_with,
    interval,
    is_negative,
    is_positive,
    mcmp,
    minus,
    minus_with,
    mmulti,
    msum,
    multi,
    negative,
    non_negative,
    non_positive,
    numeric,
    plus,
    positive,
    power,
    power_with,
)
from nervex.loader.rule import registered, rule
from nervex.loader.string import enum, regrep, rematch
from nervex.loader.types import fcall, fpartial, is_callable, is_type, method, prop, to_type
from nervex.loader.utils import check, check_only, keep, optional, raw
