from collections import Counter

from lib.words import words


def run(text):
    return dict(Counter(words(text)))
