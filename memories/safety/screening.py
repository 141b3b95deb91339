from dataclasses import dataclass
@dataclass
class V: suspicious: bool=False; reason: str=""
def screen(text, *, channel="document"): return V()
