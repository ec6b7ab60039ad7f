"""Draw the stage's dashboard from its definition in the template and from the logs of a local stack.

Usage: dashboard.py translated.yaml LOGS picture.png. LOGS is the folder of a running stack's logs. The metrics are those of the
lines in CloudWatch's embedded metric format, and the gateway's own, from its access log. Lambda's metrics and the states of the
alarms exist only in AWS, and the picture says so. A point stands for a minute, in place of the five that the dashboard shows.
"""

import collections
import datetime
import json
import re
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.dates
import matplotlib.pyplot as plt
import yaml

MINUTE = 60


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part / 100))]


STATS = {"Sum": sum, "Maximum": max}


def statistic(name, values):
    return percentile(values, float(name[1:])) if name.startswith("p") else STATS[name](values)


def read(folder):
    """Return the values of each metric by its namespace, name and dimensions, and the lines of the functions."""
    metrics, lines = collections.defaultdict(list), []
    for file in sorted(folder.glob("*.log")):
        for text in file.read_text(encoding="utf-8").splitlines():
            line = json.loads(text) if text.startswith("{") else {}
            if file.name == "gateway.log" and "latency_ms" in line:
                at = datetime.datetime.fromisoformat(line["time"]).timestamp()
                values = {"Count": 1, "4XXError": line["status"] // 100 == 4, "5XXError": line["status"] // 100 == 5,
                          "Latency": line["latency_ms"]}
                for name, value in values.items():
                    metrics["AWS/ApiGateway", name, ()].append((at, value))
            if "_aws" not in line:
                continue
            lines.append(line)
            for group in line["_aws"]["CloudWatchMetrics"]:
                for names in group["Dimensions"]:
                    of = tuple((name, line[name]) for name in sorted(names))
                    for metric in group["Metrics"]:
                        key = group["Namespace"], metric["Name"], of
                        metrics[key].append((line["_aws"]["Timestamp"] / 1000, line[metric["Name"]]))
    return metrics, lines


def series(widget, metrics):
    """Yield label, statistic and values of each line of a widget. A widget that asks only for Lambda's metrics yields nothing."""
    for entry in widget["metrics"]:
        if isinstance(entry[0], dict):
            found = re.fullmatch(r"SEARCH\('\{\"?([\w/]+)\"?,(\w+)\} MetricName=\"(\w+)\".*', '(\w+)', 300\)", entry[0]["expression"])
            namespace, dimension, name, stat = found.groups()
            for key in sorted(metrics):
                if key[:2] == (namespace, name) and [n for n, _ in key[2]] == [dimension]:
                    yield key[2][0][1], stat, metrics[key]
            continue
        namespace, name, *dimensions = entry
        stat = dimensions.pop()["stat"]
        label = f"{name} {stat}" if stat.startswith("p") else name
        yield label, stat, metrics.get((namespace, name, ()), [])


def moment(at):
    return datetime.datetime.fromtimestamp(at, datetime.UTC)


def draw_metric(axes, widget, metrics):
    drawn, all_times = False, [at for values in metrics.values() for at, _ in values]
    for label, stat, values in series(widget, metrics):
        minutes = collections.defaultdict(list)
        for at, value in values:
            minutes[int(at // MINUTE) * MINUTE].append(value)
        axes.plot([moment(at) for at in sorted(minutes)], [statistic(stat, minutes[at]) for at in sorted(minutes)], label=label, linewidth=1.2)
        drawn = True
    if drawn:
        axes.set_xlim(moment(min(all_times)), moment(max(all_times)))
        axes.legend(fontsize=5, loc="upper left", ncols=2, frameon=False)
        axes.xaxis.set_major_formatter(matplotlib.dates.DateFormatter("%H:%M"))
        axes.tick_params(labelsize=6)
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
    else:
        note(axes, "metrics of Lambda: only in AWS")


def draw_log(axes, widget, lines):
    """Draw the table of a query of the form stats FUNCTION as NAME by FIELDS."""
    call, name, fields = re.search(r"stats (\S+(?:, \d+\))?) as (\w+) by ([\w, ]+)", widget["query"]).groups()
    fields = [field.strip() for field in fields.split(",")]
    groups = collections.defaultdict(list)
    for line in lines:
        if line.get("vendor"):
            groups[tuple(str(line.get(field, "")) for field in fields)].append(line["Duration"])
    number = len if call == "count(*)" else lambda values: round(percentile(values, 99))
    rows = sorted(([*key, number(values)] for key, values in groups.items()), key=lambda row: -row[-1])[:9]
    axes.axis("off")
    if rows:
        table = axes.table(cellText=rows, colLabels=[*fields, name], loc="upper center", cellLoc="left", edges="horizontal")
        table.auto_set_font_size(False)
        table.set_fontsize(6)


def note(axes, text):
    axes.axis("off")
    axes.text(0.5, 0.5, text, ha="center", va="center", fontsize=7, color="gray", wrap=True)


def main(translated, logs, picture):
    template = yaml.safe_load(Path(translated).read_text(encoding="utf-8"))
    body = template["Resources"]["Dashboard"]["Properties"]["DashboardBody"]["Fn::Sub"]
    body = re.sub(r"\$\{(\w+)\.Arn\}", r"\1", body.replace("${Stage}", "local"))
    widgets = json.loads(re.sub(r"\$\{([\w:]+)\}", r"\1", body))["widgets"]
    metrics, lines = read(Path(logs))
    high = max(widget["y"] + widget["height"] for widget in widgets)
    figure = plt.figure(figsize=(14, high * 0.36), dpi=100)
    for place in widgets:
        widget, pad = place["properties"], 0.9 if place["type"] != "text" else 0
        axes = figure.add_axes((
            (place["x"] + pad) / 24, 1 - (place["y"] + place["height"] - pad) / high,
            (place["width"] - 1.2 * pad) / 24, (place["height"] - 2 * pad) / high))
        axes.set_title(widget.get("title", ""), fontsize=8, loc="left")
        if place["type"] == "text":
            axes.axis("off")
            axes.text(0.005, 0.3, widget["markdown"].lstrip("# "), fontsize=12, weight="bold")
        elif place["type"] == "metric":
            draw_metric(axes, widget, metrics)
        elif place["type"] == "log":
            draw_log(axes, widget, lines)
        else:
            note(axes, "  ".join(widget["alarms"]) + "\n(states: only in AWS)")
    figure.savefig(picture, metadata={"Software": None})


main(*sys.argv[1:])
