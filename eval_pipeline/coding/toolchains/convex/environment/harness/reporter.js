// Tells what every test came to: for the verdict by the channel, for people on standard output.
// It lives in vitest's main process; answers and tests run in another one.
import { readSync, writeSync } from "node:fs";

const LONGEST_MESSAGE = 2000;

function readLine(descriptor) {
  const byte = Buffer.alloc(1);
  const bytes = [];
  while (readSync(descriptor, byte) === 1 && byte[0] !== 0x0a) bytes.push(byte[0]);
  return Buffer.from(bytes).toString("utf8");
}

function messageOf(errors) {
  return errors.map((error) => error.message ?? String(error)).join("\n").slice(0, LONGEST_MESSAGE);
}

export class ChannelReporter {
  #channel = Number(process.env.EVALS_CHANNEL);
  #secret;
  #canary;

  constructor() {
    // Read and forgotten before any of the answer's code is loaded anywhere.
    const { secret, canary } = JSON.parse(readLine(this.#channel));
    this.#secret = secret;
    this.#canary = canary;
    delete process.env.EVALS_CHANNEL;
  }

  #send(words) {
    const line = Buffer.from(`${JSON.stringify({ secret: this.#secret, ...words })}\n`);
    for (let sent = 0; sent < line.length; ) sent += writeSync(this.#channel, line, sent);
  }

  onTestCaseResult(test) {
    const { state, errors = [] } = test.result();
    const name = `${test.module.relativeModuleId.replace(/^grader\//, "")} > ${test.fullName}`;
    const message = state === "skipped" ? "was skipped" : messageOf(errors);
    this.#send({ test: name, passed: state === "passed", message });
    if (name.includes(this.#canary)) return;
    console.log(state === "passed" ? `passed: ${name}` : `FAILED: ${name}\n    ${message}`);
  }

  onUserConsoleLog(log) {
    console.log(log.content.trimEnd());
  }

  onTestRunEnd(modules, unhandled) {
    const problems = [...modules.flatMap((module) => [...module.errors()]), ...unhandled];
    const errors = problems.map((problem) => messageOf([problem]));
    for (const error of errors) console.log(`ERROR: ${error}`);
    this.#send({ end: true, errors });
  }
}
