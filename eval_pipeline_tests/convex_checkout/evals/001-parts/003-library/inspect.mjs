// Runs in the deployment: what it does to the clock must not outlast it.
export async function read(ctx) {
  Date.now = () => {
    throw new Error("The clock was read.");
  };
  const { find } = await ctx.modules.books();
  const found = JSON.parse(await find.invokeQuery(JSON.stringify([ctx.args])));
  console.log("found", found.length);
  return found;
}
