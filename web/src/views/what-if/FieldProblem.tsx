/** What is wrong with a field, beside it. */
export function FieldProblem({ id, problem }: { id: string; problem: string | undefined }) {
  if (!problem) return null;
  return (
    <p id={id} className="field-problem" role="alert">
      {problem}
    </p>
  );
}
