import { useState } from "react";

import { wordsOf } from "../../api/client";
import type { Artifact, ArtifactList } from "../../api/types";
import { download } from "../../charts/export";
import { ago, duration, plural } from "../../format";
import { Card } from "../../parts/basics";
import { Wide } from "../../parts/Wide";
import { useAnswer } from "../../state/hooks";
import { client } from "../../state/session";
import { bytesText, wholeArtifact } from "./artifactFiles";

/** Files that a job has left; nothing where there are none, or who looks may not see them. */
export function Artifacts({ job, version }: { job: string; version: unknown }) {
  const path = `/jobs/${encodeURIComponent(job)}/artifacts`;
  const { data } = useAnswer<ArtifactList>(path, version);
  const [problem, setProblem] = useState("");
  if (!data || data.files.length === 0) return null;
  const save = ({ path: name }: Artifact) => {
    setProblem("");
    wholeArtifact(client, job, name).then(
      (file) => download(name.split("/").at(-1) ?? name, "application/octet-stream", file),
      (error: unknown) => setProblem(wordsOf(error)),
    );
  };
  return (
    <Card title="Artifacts">
      <p className="faint">{keptWords(data)}</p>
      {problem && (
        <p className="bad" role="alert">
          {problem}
        </p>
      )}
      <Wide label="Files">
        <table className="plain">
          <thead>
            <tr>
              <th scope="col">File</th>
              <th scope="col" className="numeric">
                Size
              </th>
              <th scope="col">Written</th>
              <th scope="col" aria-label="Download" />
            </tr>
          </thead>
          <tbody>
            {data.files.map((file) => (
              <tr key={file.path}>
                <th scope="row" className="mono">
                  {file.path}
                </th>
                <td className="numeric">{bytesText(file.size)}</td>
                <td>{ago(file.modified_at)}</td>
                <td>
                  <button
                    type="button"
                    aria-label={`Download ${file.path}`}
                    onClick={() => save(file)}
                  >
                    Download
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Wide>
    </Card>
  );
}

function keptWords({ files, more, size, kept_until: until, now }: ArtifactList): string {
  const count = plural(files.length + more, "file");
  const listed = more > 0 ? `, the first ${files.length} of them listed` : "";
  const kept = until === null ? "" : `; kept for another ${duration(Math.max(0, until - now))}`;
  return `${count}, ${bytesText(size)}${listed}${kept}.`;
}
