// In place of packages that only convex-evals' own runner uses: nothing is downloaded or started here.
export default function absent() {
  throw new Error("Graders start no backend here.");
}
