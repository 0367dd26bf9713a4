"""Ranks leads: `main` gets the input and returns the output."""

import collections
import csv
import datetime
import io

from runtime import blobs, log
from skills.lead_scoring.scoring import score

NUMBERS = ("employees", "visits")


def main(args):
    today = args.get("today")
    today = datetime.date.fromisoformat(today) if today else datetime.date.today()
    given = args["leads"] if "leads" in args else read(args["blob"])
    leads = without_duplicates(given)
    log.info("read the leads", given=len(given), kept=len(leads))
    # Equal scores in the order of their names, so that the same list always gives the same ranking.
    ranked = sorted((score(lead, today) for lead in leads), key=lambda row: (-row["score"], row["name"]))
    if not ranked:
        log.warning("there are no leads")
    return {
        "leads": len(ranked),
        "duplicates": len(given) - len(leads),
        "top": ranked[: args.get("top", 5)],
        "grades": dict(sorted(collections.Counter(row["grade"] for row in ranked).items())),
        "ranking": blobs.write_text(as_csv(ranked)),
    }


def read(blob):
    """The leads of a CSV blob; empty fields are absent."""
    leads = []
    for line, row in enumerate(csv.DictReader(io.StringIO(blobs.read_text(blob))), start=2):
        lead = {key.strip(): value.strip() for key, value in row.items() if key and value and value.strip()}
        if "name" not in lead:
            log.warning("a row without a name is left out", line=line)
            continue
        for key in NUMBERS:
            if key in lead:
                lead[key] = int(lead[key])
        leads.append(lead)
    return leads


def without_duplicates(leads):
    seen, kept = set(), []
    for lead in leads:
        email = lead.get("email", "").lower()
        if email and email in seen:
            continue
        seen.add(email)
        kept.append(lead)
    return kept


def as_csv(ranked):
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["name", "score", "grade", "reasons"])
    for row in ranked:
        rows.writerow([row["name"], row["score"], row["grade"], "; ".join(row["reasons"])])
    return text.getvalue()
