/** Questions that come faster than answers: one is on its way, the newest waits, the last wins. */
import { asError } from "../../api/client";

const PATIENCE_MS = 400;

/**
 * Answers come in the order of their questions, so none overtakes a newer one, and while somebody
 * drags a slider every answer that comes is shown. One that takes too long is given up as soon as
 * there is a newer question.
 */
export class Latest<Question, Answer> {
  private asked: AbortController | null = null;
  private next: { question: Question } | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private stopped = false;

  constructor(
    private readonly ask: (question: Question, signal: AbortSignal) => Promise<Answer>,
    private readonly told: (question: Question, answer: Answer) => void,
    private readonly failed: (question: Question, error: Error) => void,
    private readonly patienceMs = PATIENCE_MS,
  ) {}

  put(question: Question): void {
    if (this.asked) this.next = { question };
    else void this.send(question);
  }

  stop(): void {
    this.stopped = true;
    this.next = null;
    clearTimeout(this.timer);
    this.asked?.abort();
  }

  private async send(question: Question): Promise<void> {
    const asked = new AbortController();
    this.asked = asked;
    this.timer = setTimeout(() => this.giveUp(asked), this.patienceMs);
    try {
      const answer = await this.ask(question, asked.signal);
      if (!asked.signal.aborted) this.told(question, answer);
    } catch (problem) {
      if (!asked.signal.aborted) {
        this.failed(question, asError(problem));
      }
    }
    if (this.asked === asked) this.goOn();
  }

  /** From now on the one that is on its way only matters as long as nobody asks anything newer. */
  private giveUp(asked: AbortController): void {
    if (this.asked !== asked) return;
    if (this.next) {
      asked.abort();
      this.goOn();
    } else {
      this.timer = setTimeout(() => this.giveUp(asked), this.patienceMs / 4);
    }
  }

  private goOn(): void {
    clearTimeout(this.timer);
    this.asked = null;
    const { next } = this;
    this.next = null;
    if (next && !this.stopped) void this.send(next.question);
  }
}
