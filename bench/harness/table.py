"""Figures of all rounds, and the tables made of them.

A cell shows the median over the rounds, the least and the most of them in brackets, and how many times Sluice's figure
it is: the median of the ratios within each round, because targets of one round met the same load.
"""

from statistics import median

COLUMNS = {
    "latency": "latency, ms",
    "dot_paced": "final dot to reply at 100 Mb/s, ms",
    "dot": "the same, unpaced, ms",
    "cpu_alone": "CPU ms a mail",
    "rate": "mails/s, 16 senders",
    "cpu_crowd": "CPU ms a mail, 16 senders",
}


class Results:
    """Figures by set, target and name, each with the round they are of."""

    def __init__(self):
        self.figures = {}

    def add(self, set_name, target, round_number, figures):
        for name, value in figures.items():
            self.figures.setdefault((set_name, target, name), {})[round_number] = value

    def cell(self, set_name, target, name):
        """The text of one cell."""
        rounds = self.figures.get((set_name, target, name))
        if not rounds:
            return "-"
        values = list(rounds.values())
        text = f"{_number(median(values))} [{_number(min(values))}..{_number(max(values))}]"
        ours = self.figures.get((set_name, "sluice", name), {})
        ratios = [value / ours[number] for number, value in rounds.items() if value > 0 and ours.get(number, 0) > 0]
        return text if target == "sluice" or not ratios else f"{text} ×{_number(median(ratios))}"

    def rounds(self):
        """How many rounds the fullest cell has."""
        return max((len(rounds) for rounds in self.figures.values()), default=0)


def speed(results, sets, targets):
    """The table of latency, throughput and processor time."""
    rows = [["mail", "path", *COLUMNS.values()]]
    for set_name in sets:
        rows += [[set_name, target, *(results.cell(set_name, target, name) for name in COLUMNS)] for target in targets]
    return markdown(rows)


def memory(results, set_name, targets, clients, idle_bytes):
    """The table of memory: a row for each number of clients."""
    rows = [["slow clients, kB each over idle", *targets]]
    for count in clients:
        rows.append([str(count), *(results.cell(set_name, target, f"memory_{count}") for target in targets)])
    rows.append(["idle, MB in all", *(f"{idle_bytes[target] / 2**20:.1f}" for target in targets)])
    return markdown(rows)


def _number(value):
    """Three digits that mean something."""
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def markdown(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["| " + " | ".join(text.ljust(width) for text, width in zip(row, widths)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(lines)
