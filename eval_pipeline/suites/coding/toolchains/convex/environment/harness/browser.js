// What graders import as convex/browser: clients whose calls convex-test answers, in this process.
import { getFunctionName } from "convex/server";

// Where functions run on a server, none of them is loaded here.
const { answerOf, backend, serve } = process.env.EVALS_REMOTE
  ? await import("./remote.js")
  : await import("./deployment.js");

serve();

export class ConvexClient {
  #url;
  #identity;
  #isAdmin = false;

  constructor(url) {
    this.#url = url;
  }

  get url() {
    return this.#url;
  }

  setAdminAuth(_key, identity) {
    this.#isAdmin = true;
    this.#identity = identity;
  }

  setAuth() {
    throw new Error("Tokens are not checked by convex-test; setAdminAuth takes an identity.");
  }

  async #call(type, reference, args) {
    const name = typeof reference === "string" ? reference : getFunctionName(reference);
    if (new URL(this.#url).port === process.env.CONVEX_ANSWER_PORT) return answerOf(name);
    const caller = { isAdmin: this.#isAdmin, identity: this.#identity };
    return await backend().call(type, name, args ?? {}, caller);
  }

  async query(reference, args) {
    return await this.#call("query", reference, args);
  }

  async mutation(reference, args) {
    return await this.#call("mutation", reference, args);
  }

  async action(reference, args) {
    return await this.#call("action", reference, args);
  }

  /** Tells once: nothing here is live. */
  onUpdate(reference, args, tell, fail) {
    let isOver = false;
    const stop = () => (isOver = true);
    this.query(reference, args).then(
      (value) => isOver || tell(value),
      (error) => isOver || fail?.(error),
    );
    return Object.assign(stop, { unsubscribe: stop });
  }

  async close() {}
}

export class ConvexHttpClient extends ConvexClient {}
