"""Applies the rules to one lead. Other skills import it: `from skills.lead_scoring.scoring import score`."""

import datetime
import json
import re
from pathlib import Path

RULES = json.loads((Path(__file__).resolve().parent.parent / "resources" / "rules.json").read_text(encoding="utf-8"))


def score(lead, today):
    """The points of a lead, its grade, and the reason for every point."""
    facts = dict(lead)
    if lead.get("last_seen"):
        facts["days"] = (today - datetime.date.fromisoformat(lead["last_seen"])).days
    points, reasons = 0, []
    for rule in RULES["rules"]:
        if matches(rule, facts.get(rule["field"])):
            points += rule["points"]
            reasons.append(f"{rule['reason']} ({rule['points']:+d})")
    grade = next(name for name, least in RULES["grades"] if points >= least or least == 0)
    return {"name": lead["name"], "score": points, "grade": grade, "reasons": reasons}


def matches(rule, value):
    if value is None or value == "":
        return False
    if "words" in rule:
        # Whole words: `vp` is not found in `mvps`.
        words = "|".join(re.escape(word) for word in rule["words"])
        return re.search(rf"(?<!\w)(?:{words})(?!\w)", str(value).lower()) is not None
    return rule.get("from", float("-inf")) <= value <= rule.get("to", float("inf"))
