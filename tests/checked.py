"""The run-time type checker of the tests: an int where a float is declared is fine."""

from beartype import BeartypeConf, beartype

typechecker = beartype(conf=BeartypeConf(is_pep484_tower=True))
