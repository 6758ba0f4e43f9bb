import { useEffect, useRef, useState, type ReactNode } from "react";

import { wordsOf } from "../api/client";

export interface ConfirmProps {
  title: string;
  /** What will happen. */
  children: ReactNode;
  /** None: there is nothing to do any more. */
  action: string | null;
  dangerous?: boolean;
  /** Done when the service has said yes; what it says no with is shown. */
  onConfirm: () => Promise<void>;
  onClose: () => void;
}

/** Nothing that costs money or ends a job happens without it. */
export function Confirm({ title, children, action, dangerous, onConfirm, onClose }: ConfirmProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [working, setWorking] = useState(false);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  const confirm = () => {
    setWorking(true);
    setProblem("");
    onConfirm().then(onClose, (error: unknown) => {
      setWorking(false);
      setProblem(wordsOf(error));
    });
  };
  return (
    <dialog ref={dialog} className="dialog" aria-labelledby="dialog-title" onClose={onClose}>
      <h2 id="dialog-title">{title}</h2>
      <div className="dialog-body">{children}</div>
      {problem && (
        <p className="field-problem" role="alert">
          {problem}
        </p>
      )}
      <div className="dialog-buttons">
        <button type="button" onClick={onClose}>
          {action === null ? "Close" : "Cancel"}
        </button>
        {action !== null && (
          <button
            type="button"
            className={dangerous ? "danger" : "primary"}
            disabled={working}
            onClick={confirm}
          >
            {working ? "Working…" : action}
          </button>
        )}
      </div>
    </dialog>
  );
}
