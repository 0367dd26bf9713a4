"""Extractive summary: reads the input JSON, writes summary, keywords and statistics. Standard library only."""

import json
import math
import os
import re
import sys
from collections import Counter

STOP_WORDS = {
    "en": "a about after all also an and any are as at be because been before being but by can could did do does for "
    "from had has have he her here his how i if in into is it its just like may more most no not now of on one only or "
    "other our out over she should so some such than that the their them then there these they this those through to "
    "under up was we were what when where which while who will with would you your",
    "de": "aber alle als also am an auch auf aus bei bis da dann das dass dem den der des die dies diese dieser dieses "
    "doch durch ein eine einem einen einer eines er es für hat hatte ich ihr im in ist ja kann kein keine man mehr mit "
    "nach nicht noch nur oder ohne sehr sein seine sich sie sind so über um und uns unter vom von vor war was wenn wie "
    "wir wird wurde zu zum zur",
    "fr": "à au aux avec avoir c ce ces cette comme d dans de des du elle elles en est et être il ils j je l la le les "
    "leur leurs mais même n ne nous on ont ou où par pas plus pour qu que qui s sa sans se ses si son sont sous sur un "
    "une vous y été était",
    "es": "a al algo como con cuando de del desde donde dos el ella ellos en entre era es esa ese esta este esto está "
    "fue ha hasta hay la las le les lo los mas más me mi muy no nos o otro para pero por porque que qué se según ser "
    "si sin sobre son su sus también tan un una uno y ya",
    "it": "a ad ai al alla alle anche che chi ci come con così da dai dal dalla dei del della delle di dove due e ed era "
    "gli ha hanno i il in io la le lo loro ma nel nella noi non o ogni per perché più poi quando questa questo se si "
    "sono su sua sue sul sulla suo un una uno è",
    "pt": "a ao aos as até com como da das de do dos e ela ele em entre era essa esse esta este eu foi há isso já mais "
    "mas me mesmo na nas no nos não o os ou para pela pelo por porque quando que se sem ser seu sua são também tem um "
    "uma você é",
    "nl": "aan al als bij dan dat de der deze die dit door een en er had heeft hem het hij hoe hun ik in is je kan maar "
    "meer met mijn na naar niet nog nu of om omdat onder ook op over te tot uit van veel voor was wat we werd wie wordt "
    "ze zich zij zijn zo",
}
ABBREVIATIONS = set(
    "dr mr mrs ms prof st sr jr vs etc e.g i.e eg ie cf al no nr fig vol approx inc ltd co corp dept est "
    "bzw z.b d.h u.a ca usw ggf inkl bspw abs p.ex av env sig sra dott pag ecc".split()
)

# A word is letters and digits, joined by inner apostrophes, hyphens or dots between digits.
WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
# Scripts written without spaces: each pair of neighbouring characters stands in for a word.
UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\u0e00-\u0e7f]+")
SENTENCE_END = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？]+[」』”）]*")
SENTENCE_CHARS_MAX = 1000


def fail(message):
    print(f"text-summary: {message}", file=sys.stderr)
    sys.exit(1)


def integer(given, name, default, low, high):
    value = given.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        fail(f"{name} must be a whole number from {low} to {high}")
    return value


def read_input():
    try:
        with open(os.environ["SANDBOX_INPUT_FILE"], encoding="utf-8") as file:
            given = json.load(file)
    except (OSError, ValueError) as error:
        fail(f"the input is not JSON: {error}")
    if not isinstance(given, dict):
        fail('the input must be an object such as {"text": "…"}')
    text = given.get("text")
    if text is None and isinstance(given.get("path"), str):
        try:
            with open(given["path"], encoding="utf-8-sig") as file:
                text = file.read()
        except (OSError, ValueError) as error:
            fail(f"path cannot be read as UTF-8 text: {error}")
    if not isinstance(text, str):
        fail("text must be a string, or path must name a file sent with the run")
    # Half a surrogate pair is legal in JSON and nowhere else.
    text = text.encode("utf-8", "replace").decode("utf-8")
    if not WORD.search(text):
        fail("text holds no words")
    return text, {
        "sentences": integer(given, "sentences", 3, 1, 20),
        "keywords": integer(given, "keywords", 8, 0, 50),
        "words_per_minute": integer(given, "words_per_minute", 230, 50, 1000),
    }


def ends_in_abbreviation(tail):
    """Whether the full stop at the end of `tail` belongs to `Dr.`, `e.g.` or an initial."""
    last = tail.split()[-1].lstrip("(\"'“„«[")
    if not last.endswith("."):
        return False
    stem = last[:-1]
    return stem.lower() in ABBREVIATIONS or (len(stem) == 1 and stem.isalpha() and stem.isupper())


def split_sentences(paragraph):
    start = 0
    for match in SENTENCE_END.finditer(paragraph):
        if ends_in_abbreviation(paragraph[max(start, match.end() - 24) : match.end()]):
            continue
        sentence = paragraph[start : match.end()].strip()
        if sentence:
            yield sentence
        start = match.end()
    rest = paragraph[start:].strip()
    if rest:
        yield rest


def words_of(text):
    """The words of a text in order, in lower case."""
    words = []
    for match in WORD.finditer(text):
        word = match.group().lower().replace("’", "'")
        runs = UNSPACED.findall(word)
        if runs:
            for run in runs:
                words.extend(run[i : i + 2] for i in range(max(1, len(run) - 1)))
        else:
            words.append(sys.intern(word))
    return words


def guess_language(counts, total):
    best, share = None, 0.0
    for language in sorted(STOP_WORDS):
        hits = sum(counts[word] for word in STOP_WORDS[language].split())
        if hits / total > share:
            best, share = language, hits / total
    return best if share >= 0.15 else None


def telling(word, stop):
    return word not in stop and (len(word) > 2 or UNSPACED.match(word)) and not word.replace("-", "").isdigit()


def choose(sentences, stop, wanted):
    """SumBasic with a bonus for openings: the best sentence is taken, then its words count less, and again."""
    contents = [sorted({w for w in s["words"] if telling(w, stop)}) for s in sentences]
    counts = Counter(w for s in sentences for w in s["words"] if telling(w, stop))
    total = sum(counts.values()) or 1
    weight = {word: count / total for word, count in counts.items()}

    def score(index):
        words = contents[index]
        if not words:
            return 0.0
        mean = sum(weight[word] for word in words) / len(words)
        # Very short sentences would win by one frequent word; an opening usually says what follows.
        opening = 1.25 if sentences[index]["opens"] else 1.0
        return mean * min(1.0, len(words) / 6) * opening * (1.15 if index == 0 else 1.0)

    first = [score(i) for i in range(len(sentences))]
    top = max(first) or 1.0
    left, chosen, current = set(range(len(sentences))), [], first[:]
    for _ in range(min(wanted, len(sentences))):
        best = min(left, key=lambda i: (-current[i], i))
        left.remove(best)
        chosen.append({"index": best, "score": round(first[best] / top, 3), "text": sentences[best]["text"]})
        spent = set(contents[best])
        for word in spent:
            weight[word] *= weight[word]
        for index in left:
            if not spent.isdisjoint(contents[index]):
                current[index] = score(index)
    return sorted(chosen, key=lambda s: s["index"])


def find_keywords(sentences, stop, wanted):
    singles = Counter(w for s in sentences for w in s["words"] if telling(w, stop))
    # A rare word makes no keyword in a long text, and all pairs of all words would not fit in memory.
    frequent = {word for word, _ in singles.most_common(2000)}
    pairs, spread = Counter(), Counter()
    for sentence in sentences:
        seen, previous = set(), None
        for word in sentence["words"]:
            if word not in frequent:
                previous = None
                continue
            seen.add(word)
            if previous and previous != word and not UNSPACED.match(word):
                pairs[previous + " " + word] += 1
                seen.add(previous + " " + word)
            previous = word
        spread.update(seen)
    terms = {word: singles[word] for word in frequent}
    for pair, count in pairs.items():
        if count < 2:
            continue
        terms[pair] = count
        for word in pair.split():
            # A word that hardly occurs outside the pair says nothing beside it.
            if singles[word] <= count + count // 3:
                terms.pop(word, None)
    ranked = []
    for term, count in terms.items():
        longer = 1.4 if " " in term else 1.0
        ranked.append((count * (1 + math.log(1 + spread[term])) * longer, term, count))
    ranked.sort(key=lambda r: (-r[0], r[1]))
    top = ranked[0][0] if ranked else 1.0
    return [{"term": t, "count": c, "score": round(s / top, 3)} for s, t, c in ranked[:wanted]]


def main():
    text, options = read_input()
    paragraphs = [p for p in re.split(r"\n\s*\n|\n(?=\s*(?:[-*•#]|\d+[.)]\s))", text) if p.strip()]
    sentences = []
    for paragraph in paragraphs:
        for position, sentence in enumerate(split_sentences(paragraph)):
            sentence = re.sub(r"\s+", " ", sentence)
            words = words_of(sentence)
            if words:
                cut = sentence if len(sentence) <= SENTENCE_CHARS_MAX else sentence[: SENTENCE_CHARS_MAX - 1] + "…"
                sentences.append({"text": cut, "words": words, "opens": position == 0})
    counts = Counter(word for sentence in sentences for word in sentence["words"])
    total = sum(counts.values())
    language = guess_language(counts, total)
    stop = frozenset(STOP_WORDS[language].split()) if language else frozenset()
    chosen = choose(sentences, stop, options["sentences"])
    output = {
        "summary": " ".join(sentence["text"] for sentence in chosen),
        "sentences": chosen,
        "keywords": find_keywords(sentences, stop, options["keywords"]),
        "reading_time_seconds": math.ceil(total * 60 / options["words_per_minute"]),
        "language": language,
        "statistics": {
            "characters": len(text),
            "words": total,
            "distinct_words": len(counts),
            "sentences": len(sentences),
            "paragraphs": len(paragraphs),
            "words_per_sentence": round(total / len(sentences), 1),
        },
    }
    with open(os.environ["SANDBOX_OUTPUT"], "w", encoding="utf-8") as file:
        json.dump(output, file, ensure_ascii=False, indent=2)
        file.write("\n")
    print(f"read {total} words, kept {len(chosen)} of {len(sentences)} sentences")


if __name__ == "__main__":
    main()
