"""What operators filter runs by in the Temporal UI. At most ten of type Keyword fit a namespace (TEMPORAL 1)."""

from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest
from temporalio.client import Client
from temporalio.common import SearchAttributeKey

STATUS = SearchAttributeKey.for_keyword("RunhostStatus")
AGENT = SearchAttributeKey.for_keyword("RunhostAgent")
RUNNER = SearchAttributeKey.for_keyword("RunhostRunner")
CONVERSATION = SearchAttributeKey.for_keyword("RunhostConversation")
WORKSPACE = SearchAttributeKey.for_keyword("RunhostWorkspace")

KEYWORDS = (STATUS, AGENT, RUNNER, CONVERSATION, WORKSPACE)


class SearchAttributeTypeMismatch(Exception):
    """The namespace has one of our names with another type; only an operator can remove it."""


async def register(client: Client) -> None:
    """Register what is missing. Safe to repeat.

    Temporal accepts a name again with another type and ignores it silently, so the types are read first.

    Raises:
        SearchAttributeTypeMismatch: A name is taken by another type.
    """
    operator = client.operator_service
    listed = await operator.list_search_attributes(ListSearchAttributesRequest(namespace=client.namespace))
    keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
    for key in KEYWORDS:
        known = listed.custom_attributes.get(key.name)
        if known is not None and known != keyword:
            raise SearchAttributeTypeMismatch(
                f"Search attribute {key.name!r} exists in namespace {client.namespace!r} with another type;"
                " remove it with `temporal operator search-attribute remove` and start again."
            )
    missing = [key.name for key in KEYWORDS if key.name not in listed.custom_attributes]
    if missing:
        await operator.add_search_attributes(
            AddSearchAttributesRequest(namespace=client.namespace, search_attributes=dict.fromkeys(missing, keyword))
        )
