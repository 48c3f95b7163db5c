"""The known differences between the service, which Quipu follows, and DynamoDB Local, each with the fact that decides.

A rule matches the one-line outcomes of both sides (`ok`, or status, exception and message) as whole regular
expressions. Replies that are both ok match by the places in the body at which they differ."""
import re


class Known:
    def __init__(self, name, reason, ours=None, theirs=None, operation=None, places=None, when=None):
        self.name, self.reason = name, reason
        self.ours, self.theirs = re.compile(ours or "ok", re.S), re.compile(theirs or "ok", re.S)
        self.operation = re.compile(operation or ".*")
        self.places = re.compile(places) if places else None
        self.when = when
        self.used = 0

    def explains(self, difference):
        if not (self.operation.fullmatch(difference.operation)
                and self.ours.fullmatch(difference.ours.outcome)
                and self.theirs.fullmatch(difference.theirs.outcome)):
            return False
        if self.places and not all(map(self.places.fullmatch, difference.places)):
            return False
        return not self.when or self.when(difference)


def explain(difference):
    """The rule that explains it, or None."""
    for rule in KNOWN:
        if rule.explains(difference):
            rule.used += 1
            return rule
    return None


KNOWN = []
