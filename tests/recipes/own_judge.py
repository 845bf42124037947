"""Makes a judge of one's own: a rubric with a reason, checked, scored, and kept with the run.

Needs `pip install 'metrics-core[judges]'`. In place of the scripted generator stands
OpenAIChatGenerator("gpt-5-mini"), or one with api_base_url= for a server of your own.

It prints:

    EvaluationRunResult 'support bot': 3 rows of questions, answers
      kindness  3.5000  (2 of 3 scored)
    Where? 5.0 None
    When? 2.0 None
    Why? nan invalid_output
"""

from pydantic import BaseModel, Field

from llm_judges import LLMEvaluator, ScriptedChatGenerator
from metrics_core import EvaluationRunResult


class Rating(BaseModel):
    """What the judge has to answer; the server enforces it where it can, and it is checked always."""

    reason: str = Field(description="in a sentence, before the rating")
    rating: int = Field(ge=1, le=5, description="1: rude; 3: neutral; 5: kind")


def main() -> None:
    """Judges three answers, of which one reply cannot be read, and keeps why."""
    script = ScriptedChatGenerator(
        ['{"reason": "It helps.", "rating": 5}', '{"reason": "Curt.", "rating": 2}', '{"rating": 9}', "still no"]
    )
    judge = LLMEvaluator(
        "How kind is the answer?",
        inputs=[("questions", list[str]), ("answers", list[str])],
        outputs=Rating,
        score="rating",
        raise_on_failure=False,
        progress_bar=False,
        max_concurrency=1,
        chat_generator=script,
    )
    inputs = {"questions": ["Where?", "When?", "Why?"], "answers": ["Here you are.", "Look it up.", "Hm."]}
    run = EvaluationRunResult("support bot", inputs, {"kindness": judge.run(**inputs)})
    print(run)
    for question, score, reason in zip(
        inputs["questions"],
        run.detailed_report()["kindness"],
        run.results["kindness"]["reason"],
        strict=True,
    ):
        print(question, score, reason)


if __name__ == "__main__":
    main()
