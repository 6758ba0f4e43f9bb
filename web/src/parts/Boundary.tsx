import { Component, type ReactNode } from "react";

import { wordsOf } from "../api/client";
import { Problem } from "./basics";

/** Where one view breaks, the others and the way to them stay. */
export class Boundary extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(problem: unknown): { error: Error } {
    const said = wordsOf(problem);
    return { error: new Error(`This view broke: ${said}`) };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (!error) return this.props.children;
    return <Problem error={error} again={() => this.setState({ error: null })} />;
  }
}
