import type { PolicyChoice } from "../../api/types";
import { FieldProblem } from "./FieldProblem";
import { askable, groupsOf } from "./policies";
import type { Draft } from "./question";

interface ChecksProps {
  names: readonly string[];
  chosen: readonly string[];
  /** Of the names; others cannot be chosen. */
  open: readonly string[];
  onChange: (chosen: string[]) => void;
}

function Checks({ names, chosen, open, onChange }: ChecksProps) {
  const toggled = (name: string) =>
    chosen.includes(name) ? chosen.filter((one) => one !== name) : [...chosen, name];
  return (
    <div className="checks">
      {names.map((name) => (
        <label key={name} className="check">
          <input
            type="checkbox"
            checked={chosen.includes(name)}
            disabled={!open.includes(name)}
            onChange={() => onChange(toggled(name))}
          />
          {name}
        </label>
      ))}
    </div>
  );
}

interface FieldProps {
  chosen: readonly string[];
  problem: string | undefined;
  change: (part: Partial<Draft>) => void;
}

interface PolicyFieldProps extends FieldProps {
  policies: readonly PolicyChoice[];
  byCalendar: boolean;
}

export function PolicyField(props: PolicyFieldProps) {
  const { policies, byCalendar, chosen, problem, change } = props;
  const names = policies.map((policy) => policy.name);
  return (
    <fieldset aria-describedby="policies-problem">
      <legend>Policies</legend>
      {groupsOf(policies).map((group) => (
        <div key={group.title} className="check-group" role="group" aria-label={group.title}>
          <div className="small">
            {group.title} <span className="faint">· {group.about}</span>
          </div>
          <Checks
            names={group.policies}
            chosen={chosen}
            open={askable(policies, byCalendar)}
            onChange={(next) => change({ policies: names.filter((one) => next.includes(one)) })}
          />
        </div>
      ))}
      <FieldProblem id="policies-problem" problem={problem} />
    </fieldset>
  );
}

export function TypesField(props: FieldProps & { types: readonly string[] }) {
  const { types, chosen, problem, change } = props;
  return (
    <fieldset aria-describedby="types-problem">
      <legend>GPU types</legend>
      <Checks
        names={types}
        chosen={chosen}
        open={types}
        onChange={(next) => change({ gpuTypes: types.filter((one) => next.includes(one)) })}
      />
      <p className="faint small">Some policies run on one type only.</p>
      <FieldProblem id="types-problem" problem={problem} />
    </fieldset>
  );
}
