"""Check digits and number rules that tell a real identifier from a string of digits. Pure arithmetic."""

from __future__ import annotations

from datetime import date

_CN_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_CN_CHECK = "10X98765432"
_CN_PROVINCES = frozenset(
    str(code)
    for first, last in ((11, 15), (21, 23), (31, 37), (41, 46), (50, 54), (61, 65), (71, 71), (81, 83))
    for code in range(first, last + 1)
)

# Registered lengths, from the SWIFT IBAN registry (release 99).
IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AL": 28, "AT": 20, "AZ": 28, "BA": 20, "BE": 16, "BG": 22, "BH": 22, "BI": 27,
    "BR": 29, "BY": 28, "CH": 21, "CR": 22, "CY": 28, "CZ": 24, "DE": 22, "DJ": 27, "DK": 18, "DO": 28,
    "EE": 20, "EG": 29, "ES": 24, "FI": 18, "FK": 18, "FO": 18, "FR": 27, "GB": 22, "GE": 22, "GI": 23,
    "GL": 18, "GR": 27, "GT": 28, "HN": 28, "HR": 21, "HU": 28, "IE": 22, "IL": 23, "IQ": 23, "IS": 26,
    "IT": 27, "JO": 30, "KW": 30, "KZ": 20, "LB": 28, "LC": 32, "LI": 21, "LT": 20, "LU": 20, "LV": 21,
    "LY": 25, "MC": 27, "MD": 24, "ME": 22, "MK": 19, "MN": 20, "MR": 27, "MT": 31, "MU": 30, "NI": 28,
    "NL": 18, "NO": 15, "OM": 23, "PK": 24, "PL": 28, "PS": 29, "PT": 25, "QA": 29, "RO": 24, "RS": 22,
    "RU": 33, "SA": 24, "SC": 31, "SD": 18, "SE": 24, "SI": 19, "SK": 24, "SM": 27, "SO": 23, "ST": 25,
    "SV": 28, "TL": 23, "TN": 24, "TR": 26, "UA": 29, "VA": 22, "VG": 24, "XK": 20, "YE": 30,
}  # fmt: skip


def luhn(digits: str) -> bool:
    """Whether ASCII digits carry a right Luhn check digit (ISO/IEC 7812-1); all zeros do not."""
    total = 0
    for place, char in enumerate(reversed(digits)):
        value = ord(char) - 48
        if place % 2:
            value = value * 2 - 9 if value > 4 else value * 2
        total += value
    return total % 10 == 0 and digits.strip("0") != ""


def iban(compact: str) -> bool:
    """Whether an upper-case IBAN without spaces has its country's length and mod 97 = 1 (ISO 13616)."""
    if IBAN_LENGTHS.get(compact[:2]) != len(compact):
        return False
    turned = compact[4:] + compact[:4]
    return int("".join(str(int(char, 36)) for char in turned)) % 97 == 1


def _is_birth_date(year: int, month: int, day: int) -> bool:
    try:
        born = date(year, month, day)
    except ValueError:
        return False
    return born.year >= 1880 and born <= date.today()


def cn_resident_id(compact: str) -> bool:
    """Whether 18 characters are a Chinese resident ID: province, birth date, check digit (GB 11643)."""
    if compact[:2] not in _CN_PROVINCES or compact[2:6] == "0000":
        return False
    if not _is_birth_date(int(compact[6:10]), int(compact[10:12]), int(compact[12:14])):
        return False
    weighted = sum(weight * int(char) for weight, char in zip(_CN_WEIGHTS, compact[:17], strict=True))
    return _CN_CHECK[weighted % 11] == compact[17].upper()


def cn_resident_id_old(compact: str) -> bool:
    """Whether 15 digits have the shape of a first-generation Chinese ID. It has no check digit."""
    return compact[:2] in _CN_PROVINCES and _is_birth_date(
        1900 + int(compact[6:8]), int(compact[8:10]), int(compact[10:12])
    )


def us_ssn(compact: str) -> bool:
    """Whether nine digits can be a US social security number (the SSA's rules on area, group and serial)."""
    area, group, serial = compact[:3], compact[3:5], compact[5:]
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000"
