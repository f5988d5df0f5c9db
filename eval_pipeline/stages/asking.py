"""Asking one model: again when that can help, as fast as it lets us, within the budget."""

import random
import time
from dataclasses import dataclass

from eval_pipeline.money import Account, BudgetReached, Expected, Forecast, priced
from eval_pipeline.providers.chat import Asked, ChatProvider, ChatReply, ChatRequest, ProviderError
from eval_pipeline.providers.limits import RetryPolicy
from eval_pipeline.providers.pace import Halted, Pace
from eval_pipeline.records import Outcome, Usage
from eval_pipeline.stages.workers import Shift


@dataclass(frozen=True)
class Asking:
    """How one model is asked: through whom, how patiently, how fast and at what price."""

    provider: ChatProvider
    policy: RetryPolicy
    pace: Pace
    forecast: Forecast

    async def ask(self, request: ChatRequest, shift: Shift) -> Asked:
        """Asks until there is a reply or the policy gives up; an empty reply is asked again too."""
        attempt, usage = 0, Usage()
        failure: ProviderError | None = None
        began = time.monotonic()
        while True:
            try:
                reply, used = await self._attempt(request, shift)
            except ProviderError as error:
                failure = error
            except Halted as halted:
                _stop_if_spent(shift, halted)
                if failure is None:
                    raise
                return Asked(None, failure, attempt, usage)
            else:
                usage = used if not attempt else usage.plus(used)
                if reply.outcome is not Outcome.EMPTY:
                    return Asked(reply, None, attempt + 1, usage)
                failure = ProviderError(Outcome.EMPTY, "The reply has no text.", transient=True)
            attempt += 1
            if not await self._may_try_again(attempt, failure, began, shift):
                return Asked(None, failure, attempt, usage)

    async def _attempt(self, request: ChatRequest, shift: Shift) -> tuple[ChatReply, Usage]:
        """One request, with what it cost, and counted in how fast the next ones go."""
        expected = self.forecast.expect(request)
        await self.pace.enter(shift.halt, tokens=expected.tokens)
        try:
            await shift.account.reserve(expected.cost_usd, shift.halt)
            reply, usage = await self._exchange(request, expected, shift.account)
        finally:
            self.pace.leave()
        self.forecast.learn(usage)
        return reply, usage

    async def _exchange(
        self, request: ChatRequest, expected: Expected, account: Account
    ) -> tuple[ChatReply, Usage]:
        started, cost = time.monotonic(), 0.0
        try:
            reply = await self.provider.complete(request)
            usage = priced(reply.usage, self.forecast.prices)
            cost = usage.cost_usd or 0.0
        except ProviderError as error:
            if error.outcome is Outcome.RATE_LIMITED:
                self.pace.turned_away(started, error.retry_after)
            raise
        finally:
            account.settle(expected.cost_usd, cost)
        self.pace.answered(started, tokens_off=usage.tokens - expected.tokens)
        return reply, usage

    async def _may_try_again(
        self, attempt: int, failure: ProviderError, began: float, shift: Shift
    ) -> bool:
        """Waits as long as it takes; not if that is too long or all is to stop."""
        wait = self.policy.wait_after(
            attempt,
            transient=failure.transient,
            retry_after=failure.retry_after,
            jitter=random.random(),  # noqa: S311
            elapsed_s=time.monotonic() - began,
        )
        if wait is None:
            return False
        try:
            await shift.rest(wait)
        except Halted:
            return False
        return True


def _stop_if_spent(shift: Shift, halted: Halted) -> None:
    if isinstance(halted, BudgetReached):
        shift.stop_for_budget(str(halted))
