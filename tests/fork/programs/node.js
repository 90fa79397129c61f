// SPDX-License-Identifier: Apache-2.0
// Objects, compiled code, and another thread that answers: see programs.bats.
const { createHash } = require("crypto");
const { writeFileSync } = require("fs");
const { Worker } = require("worker_threads");

const kept = Array.from({ length: 5000 }, (_, i) => ({ i, text: "text " + i, list: [i, i * 1.5, "x".repeat(i % 50)] }));
const sum = () => createHash("sha1").update(JSON.stringify(kept)).digest("hex");
const compiled = (n) => { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003; return s; };
const first = [sum(), compiled(100000)];
const worker = new Worker('require("worker_threads").parentPort.on("message", (n) => require("worker_threads").parentPort.postMessage(n + 1))',
	{ eval: true });
let n = 0;

worker.on("message", (answer) => {
	if (sum() !== first[0] || compiled(100000) !== first[1] || answer !== n + 1)
		writeFileSync("/bad", `${answer} after ${n}, ${sum()}, ${compiled(100000)}`);
	n = answer;
	writeFileSync("/n", n + "\n");
	setTimeout(() => worker.postMessage(n), 10);
});
worker.postMessage(0);
