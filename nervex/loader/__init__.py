"""Small combinators that check and convert values; config validation is made of them."""

from nervex.utils.lazy import lazy_exports

_HOMES = {
    'nervex.loader.base': 'Loader check check_only keep optional raw',
    'nervex.loader.errors': 'CollectionError CompositeStructureError DictError MappingError',
    'nervex.loader.algebra': 'Norm land lcmp lin lis lisnot lnot lor lsum norm normfunc',
    'nervex.loader.rules': 'registered rule',
    'nervex.loader.structures': (
        'cofilter collection contains dict_ item item_or length length_is mapping mpfilter mpitems mpkeys mpvalues '
        'tpselector tuple_'
    ),
    'nervex.loader.values': (
        'divide divide_with enum fcall fpartial interval is_callable is_negative is_positive is_type mcmp method minus '
        'minus_with mmulti msum multi negative non_negative non_positive numeric plus positive power power_with prop '
        'regrep rematch to_type'
    ),
}
__getattr__, __dir__, __all__ = lazy_exports(__name__, _HOMES)
