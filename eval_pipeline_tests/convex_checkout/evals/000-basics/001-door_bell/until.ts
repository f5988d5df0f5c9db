export async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 100; turn++) {
    if (await isSo()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error("It has not come to be.");
}
