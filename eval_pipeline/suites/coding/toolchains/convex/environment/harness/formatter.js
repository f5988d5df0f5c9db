// One line per problem, with paths as the answer's author knows them.
import { relative } from "node:path";

export default function format(results, context) {
  return results
    .flatMap(({ filePath, messages }) =>
      messages.map(({ line, column, message, ruleId }) => {
        const place = `${relative(context.cwd, filePath)}:${line ?? 1}:${column ?? 1}`;
        return `${place}: ${message} (${ruleId ?? "syntax"})`;
      }),
    )
    .join("\n");
}
