"""Numbers with their units, read from text only where they can mean nothing else."""

import math
import re
from collections import Counter
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from eval_pipeline.suites.exam.rules.normalize import plain

_MAX_QUANTITY = 200


class Unit(NamedTuple):
    """A unit as a multiple of base units and their powers."""

    scale: Fraction
    powers: dict[str, int]

    @property
    def dimension(self) -> dict[str, int]:
        """The powers of those base units that measure something."""
        return {name: power for name, power in self.powers.items() if name not in _KINDS}


# They have no dimension, but keep apart what must not be converted: Hz and 1/s, degrees Celsius and
# kelvin, years and days.
_KINDS = frozenset({"cycle", "rad", "bit", "%", "scale", "calendar"})
_BASES = frozenset({"m", "s", "g", "A", "K", "mol"}) | _KINDS
_DERIVED = {
    "Hz": "1 cycle/s", "N": "1 kg m/s^2", "J": "1 N m", "eV": "1.602176634e-19 J", "W": "1 J/s",
    "Pa": "1 N/m^2", "C": "1 A s", "V": "1 J/C", "F": "1 C/V", "\u03a9": "1 V/A", "T": "1 V s/m^2",
    "L": "1 dm^3", "l": "1 dm^3", "M": "1 mol/L", "min": "60 s", "h": "3600 s", "d": "86400 s",
    "yr": "31557600 calendar s", "c": "299792458 m/s", "\u00b0": f"{math.pi / 180} rad",
    "\u00b0C": "1 scale K",
}  # fmt: skip
_PREFIXED = frozenset({
    "m", "s", "g", "A", "K", "mol", "rad", "bit", "Hz", "N", "J", "eV", "W", "Pa", "C", "V", "F",
    "\u03a9", "T", "L", "l", "M",
})  # fmt: skip
_PREFIXES = {
    "f": -15, "p": -12, "n": -9, "u": -6, "\u03bc": -6, "m": -3, "c": -2, "d": -1, "h": 2, "k": 3,
    "M": 6, "G": 9, "T": 12,
}  # fmt: skip
_NAMES = {
    "meter": "m", "metre": "m", "second": "s", "sec": "s", "gram": "g", "ampere": "A", "amp": "A",
    "kelvin": "K", "mole": "mol", "hertz": "Hz", "newton": "N", "joule": "J", "electronvolt": "eV",
    "watt": "W", "pascal": "Pa", "coulomb": "C", "volt": "V", "farad": "F", "ohm": "\u03a9",
    "tesla": "T", "liter": "L", "litre": "L", "minute": "min", "min": "min", "hour": "h", "hr": "h",
    "day": "d", "year": "yr", "yr": "yr", "degree": "\u00b0", "celsius": "\u00b0C",
    "percent": "%", "radian": "rad", "bit": "bit", "cycle": "cycle",
}  # fmt: skip
_PREFIX_NAMES = {
    "femto": "f", "pico": "p", "nano": "n", "micro": "u", "milli": "m", "centi": "c", "kilo": "k",
    "mega": "M", "giga": "G", "tera": "T",
}  # fmt: skip
_SPELLED_OUT = _NAMES | {
    prefix + name: letter + symbol
    for prefix, letter in _PREFIX_NAMES.items()
    for name, symbol in _NAMES.items()
    if symbol in _PREFIXED
}
_CELSIUS = re.compile(r"(?:\u00b0|\bdeg(?:rees?)?) ?(?:celsius|C)\b", re.IGNORECASE)
_FACTOR = re.compile(r"([A-Za-z\u03bc\u03a9\u00b0%]+)(?:\^?\(?([+-]?[1-9])\)?)?")


@lru_cache(maxsize=1024)
def _unit(text: str) -> Unit | None:
    """A product of known units over others, like J/(K mol); None if any of it is not known."""
    scale, powers = Fraction(1), Counter[str]()
    for number, part in enumerate(_CELSIUS.sub("\u00b0C", text).replace(" per ", "/").split("/")):
        factors = re.split(r"[ *]+", part.strip().removeprefix("(").removesuffix(")"))
        if number and len(factors) > 1 and not part.strip().startswith("("):
            return None
        for factor in factors:
            match = _FACTOR.fullmatch(factor)
            if not match or not (unit := _symbol(match[1])):
                return None
            power = int(match[2] or 1) * (-1 if number else 1)
            scale *= unit.scale**power
            powers.update({name: old * power for name, old in unit.powers.items()})
    return Unit(scale, {name: power for name, power in powers.items() if power})


def _symbol(name: str) -> Unit | None:
    if name in _BASES:
        return Unit(Fraction(1), {name: 1})
    if name in _DERIVED:
        scale, _, definition = _DERIVED[name].partition(" ")
        return _times(Fraction(scale), _unit(definition))
    if name[:1] in _PREFIXES and name[1:] in _PREFIXED:
        return _times(Fraction(10) ** _PREFIXES[name[0]], _symbol(name[1:]))
    name = name.casefold()
    symbol = _SPELLED_OUT.get(name) or _SPELLED_OUT.get(name.removesuffix("s"))
    return _symbol(symbol) if symbol else None


def _times(scale: Fraction, unit: Unit | None) -> Unit | None:
    return unit._replace(scale=scale * unit.scale) if unit else None


class Quantity(NamedTuple):
    """A number with the unit of its last stated digit, the step, which is 0 for a fraction."""

    value: Fraction
    step: Fraction
    whole: bool
    unit: Unit | None
    number_text: str
    unit_text: str

    @property
    def exact(self) -> bool:
        """Whether it is a whole number or a fraction, so that nothing of it was rounded."""
        return self.whole or not self.step


_ABOUT = re.compile(r"^(?:\u2248|\u2243|=|approximately|approx\.?|about|roughly) ?", re.IGNORECASE)
_FRAC = re.compile(r"\\frac ?(?:\{([0-9]+)\} ?\{([0-9]+)\}|([0-9])([0-9])(?![0-9]))")
_POWER = r"10(?:\^|\*\*)\(?(?P<{}>[+-]?[0-9]{{1,3}})\)?(?![0-9])"
_NUMBER = re.compile(
    r"(?P<sign>[+-]?) ?(?:"
    r"(?P<top>0|[1-9][0-9]*) ?/ ?(?P<bottom>[1-9][0-9]*)(?![0-9.,^])"
    rf"|{_POWER.format('alone')}"
    r"|(?P<digits>[1-9][0-9]{0,2}(?:,[0-9]{3})+(?![0-9])|[1-9][0-9]{0,2}(?: [0-9]{3})+(?![0-9])"
    r"|0(?![0-9])|[1-9][0-9]*|(?=\.[0-9]))(?:\.(?P<decimals>[0-9]+))?"
    rf"(?:[eE](?P<exponent>[+-]?[0-9]{{1,3}})(?![0-9])| ?[*x] ?{_POWER.format('power')})?)"
    r"(?![0-9^!])"
)


def quantity(text: str) -> Quantity | None:
    """The number that the text is, with its unit; None if it is or may be anything else."""
    if len(text) > _MAX_QUANTITY:
        return None
    text = _FRAC.sub(lambda frac: " {}/{}".format(*filter(None, frac.groups())), plain(text))
    text = _ABOUT.sub("", text.replace("~", " ").strip())
    match = _NUMBER.match(text)
    if not match:
        return None
    unit_text = text[match.end() :].strip()
    unit = _unit(unit_text)
    if unit_text and not unit:
        return None
    return Quantity(*_read_number(match), unit, match[0].strip(), unit_text)


def _read_number(match: re.Match[str]) -> tuple[Fraction, Fraction, bool]:
    sign = -1 if match["sign"] == "-" else 1
    if match["top"]:
        return sign * Fraction(int(match["top"]), int(match["bottom"])), Fraction(0), False
    digits = "1" if match["alone"] else re.sub("[, ]", "", match["digits"])
    decimals = match["decimals"] or ""
    stated = match["alone"] or match["exponent"] or match["power"]
    step = Fraction(10) ** (int(stated or 0) - len(decimals))
    return sign * int(digits + decimals) * step, step, not decimals and stated is None
