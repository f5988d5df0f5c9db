// What a deployment would tell of itself to its admin: schema, functions, routes and crons.

const TYPES = { isQuery: "Query", isMutation: "Mutation", isAction: "Action" };

function functionsIn(path, module) {
  const exported = Object.entries(module).sort(([one], [other]) => (one < other ? -1 : 1));
  return exported.flatMap(([name, value]) => {
    const type = Object.keys(TYPES).find((flag) => value?.[flag] === true);
    if (!type || typeof value.exportArgs !== "function") return [];
    return [
      {
        identifier: `${path}.js:${name}`,
        functionType: TYPES[type],
        visibility: { kind: value.isPublic ? "public" : "internal" },
        args: JSON.parse(value.exportArgs()),
        returns: JSON.parse(value.exportReturns()),
      },
    ];
  });
}

function routesIn(router) {
  if (typeof router?.getRoutes !== "function") return [];
  return router.getRoutes().map(([path, method]) => ({ functionType: "HttpAction", method, path }));
}

function cronsIn(crons) {
  if (crons?.isCrons !== true) return [];
  return Object.entries(JSON.parse(crons.export())).map(([name, { name: udfPath, args, schedule }]) => ({
    name,
    cronSpec: { udfPath, udfArgs: args, cronSchedule: schedule },
  }));
}

/** `modules` are loaded ones, by their paths in the folder of functions and without extension. */
export function describe(modules) {
  const paths = Object.keys(modules).sort();
  return {
    schema: modules.schema?.default ? JSON.parse(modules.schema.default.export()) : null,
    functions: [
      ...paths.flatMap((path) => functionsIn(path, modules[path])),
      ...routesIn(modules.http?.default),
    ],
    crons: cronsIn(modules.crons?.default),
  };
}

/** The same as a deployment's admin gets to see it. */
export function adminView(name, { schema, functions, crons }) {
  switch (name) {
    case "_system/frontend/getSchemas":
      return { active: schema && JSON.stringify(schema), inProgress: null };
    case "_system/cli/modules:apiSpec":
      return functions;
    case "_system/frontend/listCronJobs":
      return crons;
    default:
      throw new Error(`${name} is not answered without a backend.`);
  }
}
