// Tells what every test came to: for the verdict by the channel, for people on standard output.
// It lives in vitest's main process; answers and tests run in another one.
import { read, readSync, writeSync } from "node:fs";

const LONGEST_MESSAGE = 2000;

function readLine(descriptor) {
  const byte = Buffer.alloc(1);
  const bytes = [];
  while (readSync(descriptor, byte) === 1 && byte[0] !== 0x0a) bytes.push(byte[0]);
  return Buffer.from(bytes).toString("utf8");
}

/** A line that may take its time; nobody else reads meanwhile. */
function laterLine(descriptor) {
  const chunk = Buffer.alloc(1 << 16);
  const parts = [];
  return new Promise((resolve, reject) => {
    const next = () =>
      read(descriptor, chunk, 0, chunk.length, null, (error, size) => {
        if (error || size === 0) return reject(error ?? new Error("The channel is closed."));
        parts.push(Buffer.from(chunk.subarray(0, size)));
        if (chunk[size - 1] === 0x0a) return resolve(Buffer.concat(parts).toString("utf8"));
        next();
      });
    next();
  });
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

  #asking = Promise.resolve();

  /** Has something asked of the backend, one after the other; resolves to what it said. */
  ask(words) {
    const turn = this.#asking.then(async () => {
      this.#send({ ask: words });
      return JSON.parse(await laterLine(this.#channel));
    });
    this.#asking = turn.catch(() => {});
    return turn;
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
    // What went wrong before or after tests: without it, these were merely skipped.
    const around = modules.flatMap((module) => [module, ...module.children.allSuites()]);
    const problems = [...around.flatMap((one) => [...one.errors()]), ...unhandled];
    const errors = problems.map((problem) => messageOf([problem]));
    for (const error of errors) console.log(`ERROR: ${error}`);
    this.#send({ end: true, errors });
  }
}
