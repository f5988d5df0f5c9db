"""Asking one model: again when that can help, as fast as it lets us, within the budget."""

import random
import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from eval_pipeline.gateways.chat import Asked, ChatProvider, ChatReply, ChatRequest, ProviderError
from eval_pipeline.gateways.limits import RetryPolicy
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.gateways.rate_limiter import Pace
from eval_pipeline.money import Account, BudgetReached, Forecast, priced
from eval_pipeline.outcomes import Outcome
from eval_pipeline.records import NOTHING_USED, Model, Usage
from eval_pipeline.runtime import Halted
from eval_pipeline.settings import Settings
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
        attempt, usage = 0, NOTHING_USED
        # To be turned away is counted apart from failing.
        tries: Counter[bool] | None = None
        began: float | None = None
        failure: ProviderError | None = None
        while True:
            try:
                turn = await self._enter(request, shift)
            except Halted:
                if failure is None:
                    raise
                return Asked(None, failure, attempt, usage)
            # Its time begins when it is asked, not while it waits for its turn.
            began = began or time.monotonic()
            attempt += 1
            try:
                reply, used = await self._exchange(request, turn, shift.account)
            except ProviderError as error:
                failure = error
            else:
                usage = used if attempt == 1 else usage.plus(used)
                if reply.outcome is not Outcome.EMPTY:
                    return Asked(reply, None, attempt, usage)
                failure = ProviderError(Outcome.EMPTY, "The reply has no text.", transient=True)
            tries = tries or Counter()
            tries[failure.outcome is Outcome.RATE_LIMITED] += 1
            if not await self._may_try_again(tries, failure, began, shift):
                return Asked(None, failure, attempt, usage)

    async def _enter(self, request: ChatRequest, shift: Shift) -> "_Turn":
        """Waits until a request may be made, and may be paid for."""
        tokens = self.forecast.expect(request).tokens if self.pace.is_metered else 0.0
        await self.pace.enter(shift.halt, tokens=tokens)
        if not shift.account.purses:
            return _Turn(tokens, 0.0)
        try:
            usd = await shift.account.reserve(partial(self.forecast.expect, request), shift.halt)
        except BudgetReached as reached:
            self.pace.leave()
            shift.stop_for_budget(str(reached))
            raise
        except BaseException:
            self.pace.leave()
            raise
        return _Turn(tokens, usd)

    async def _exchange(
        self, request: ChatRequest, turn: "_Turn", account: Account
    ) -> tuple[ChatReply, Usage]:
        """One request, with what it cost, and counted in how fast the next ones go."""
        started, cost = time.monotonic(), 0.0
        try:
            reply = await self.provider.complete(request)
            usage = priced(reply.usage, self.forecast.prices)
            cost = usage.cost_usd or 0.0
            self.forecast.learn(usage)
            self.pace.answered(started, tokens_off=(usage.tokens or turn.tokens) - turn.tokens)
        except ProviderError as error:
            self.forecast.fail()
            if error.outcome is Outcome.RATE_LIMITED:
                self.pace.turned_away(started, error.retry_after)
            raise
        finally:
            account.settle(turn.usd, cost)
            self.pace.leave()
        return reply, usage

    async def _may_try_again(
        self, tries: Counter[bool], failure: ProviderError, began: float, shift: Shift
    ) -> bool:
        """Waits as long as it takes; not if that is too long or all is to stop."""
        limited = failure.outcome is Outcome.RATE_LIMITED
        wait = self.policy.wait_after(
            tries[limited],
            limited=limited,
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


def how_to_ask(model: Model, settings: Settings, gateways: Gateways, most: int) -> Asking:
    """Through whom a model is asked, how patiently, how fast and at what price."""
    requests = settings.requests
    policy = RetryPolicy(
        attempts=requests.attempts,
        attempts_when_limited=requests.attempts_when_limited,
        first_wait_s=requests.first_wait_s,
        longest_wait_s=requests.longest_wait_s,
        total_s=requests.total_s,
    )
    return Asking(
        gateways.provider(model), policy, gateways.pace(model, most), Forecast(model.prices)
    )


class _Turn(NamedTuple):
    """What was set aside for one request."""

    tokens: float
    usd: float
