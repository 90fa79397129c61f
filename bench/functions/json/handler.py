# SPDX-License-Identifier: Apache-2.0
"""Parses a JSON document of half a megabyte, changes it, and writes it again."""
import hashlib
import json
import random

ORDERS = 1500


def setup():
    chance = random.Random(2)
    orders = [{"id": number, "paid": chance.random() < 0.5, "note": None if number % 7 else "über größe \u2713",
               "customer": {"name": f"customer {chance.randrange(10000)}", "points": chance.randrange(1 << 20)},
               "lines": [{"article": f"A{chance.randrange(100000):05}", "count": chance.randint(1, 9),
                          "price": chance.randint(1, 99999) / 100} for _ in range(5)]} for number in range(ORDERS)]
    return json.dumps({"orders": orders})


def handle(text):
    document = json.loads(text)
    for order in document["orders"]:
        order["cents"] = sum(line["count"] * round(line["price"] * 100) for line in order["lines"])
    out = json.dumps(document, sort_keys=True)
    total = sum(order["cents"] for order in document["orders"])
    return {"bytes": len(out), "cents": total, "sha256": hashlib.sha256(out.encode()).hexdigest()}
