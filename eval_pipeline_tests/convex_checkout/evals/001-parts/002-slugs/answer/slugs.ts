export function slugOf(title: string): string {
  return title.toLowerCase().match(/[a-z0-9]+/g)?.join("-").slice(0, 40) ?? "";
}
